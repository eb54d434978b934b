//! Signing ahead with slow signers.

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_core::future::BoxFuture;
use grid_batch_core::ManualClock;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_evm::{Address, GasAdminKey, Signature, SignerError, TransactionSigner};
use grid_batch_withdrawals::WithdrawalId;

use crate::{
    harness::{Harness, key_of},
    memory_store::MemoryStore,
};

/// A chain whose gas admin's signer is made from the key, the store and the clock.
fn harness<S: TransactionSigner + 'static>(
    signer: impl FnOnce(GasAdminKey, &Harness) -> Arc<S>,
) -> (Harness, Arc<S>) {
    let mut harness = Harness::new();
    let signer = signer(key_of(harness.admin()), &harness);
    harness.restart_with(|options| {
        options.in_flight = 8;
        options.signers = vec![signer.clone()];
    });
    (harness, signer)
}

fn schedule(harness: &Harness, count: usize) -> Vec<WithdrawalId> {
    (1..=count).map(|amount| harness.schedule(&amount.to_string())).collect()
}

fn count_signed(harness: &Harness, ids: &[WithdrawalId]) -> usize {
    ids.iter().filter(|id| !harness.store.nonces(**id).is_empty()).count()
}

/// Each signature takes this long.
#[derive(Debug)]
struct SlowSigner {
    key: GasAdminKey,
    clock: Arc<ManualClock>,
    duration: Duration,
}

impl TransactionSigner for SlowSigner {
    fn address(&self) -> Address {
        self.key.address()
    }

    fn sign<'a>(&'a self, payload: &'a [u8]) -> BoxFuture<'a, Result<Signature, SignerError>> {
        self.clock.advance(self.duration);
        self.key.sign(payload)
    }
}

#[tokio::test]
async fn slow_signer_signs_some_at_each_look() {
    for (duration, first, second) in [(700, 4, 7), (5_000, 2, 3)] {
        let duration = Duration::from_millis(duration);
        let (harness, _) = harness(|key, harness| {
            Arc::new(SlowSigner { key, clock: harness.clock.clone(), duration })
        });
        let ids = schedule(&harness, 8);
        harness.accept(ids[0]).await;
        harness.status(ids[0]).await;
        assert_eq!(count_signed(&harness, &ids), first, "{duration:?}");
        assert_eq!(harness.proxy.sent().len(), first, "{duration:?}");
        harness.status(ids[0]).await;
        assert_eq!(count_signed(&harness, &ids), second, "{duration:?}");
    }
}

/// Signs once, and then does not answer for longer than a look may take.
#[derive(Debug)]
struct HungSigner {
    key: GasAdminKey,
    requests: AtomicUsize,
}

impl TransactionSigner for HungSigner {
    fn address(&self) -> Address {
        self.key.address()
    }

    fn sign<'a>(&'a self, payload: &'a [u8]) -> BoxFuture<'a, Result<Signature, SignerError>> {
        if self.requests.fetch_add(1, Ordering::Relaxed) == 0 {
            return self.key.sign(payload);
        }
        Box::pin(async {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(60)).await;
            tokio::time::resume();
            future::pending().await
        })
    }
}

#[tokio::test]
async fn hung_signer_is_not_asked_again_at_once() {
    let (harness, signer) =
        harness(|key, _| Arc::new(HungSigner { key, requests: AtomicUsize::default() }));
    let ids = schedule(&harness, 3);
    harness.accept(ids[0]).await;
    for _ in 0..3 {
        assert_eq!(harness.status(ids[0]).await, LedgerStatus::Pending);
    }
    assert_eq!(signer.requests.load(Ordering::Relaxed), 2);
    harness.advance_clock(Duration::from_secs(60));
    harness.status(ids[0]).await;
    assert_eq!(signer.requests.load(Ordering::Relaxed), 3);
}

/// Counts the signatures that were made while the first withdrawal had no result.
#[derive(Debug)]
struct ObservingSigner {
    key: GasAdminKey,
    store: Arc<MemoryStore>,
    open: AtomicUsize,
    requests: AtomicUsize,
}

impl TransactionSigner for ObservingSigner {
    fn address(&self) -> Address {
        self.key.address()
    }

    fn sign<'a>(&'a self, payload: &'a [u8]) -> BoxFuture<'a, Result<Signature, SignerError>> {
        let first = WithdrawalId::from_bytes([1; 16]);
        let is_open = self.store.nonces(first).first().is_none_or(|nonce| nonce.outcome.is_none());
        self.open.fetch_add(is_open.into(), Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.key.sign(payload)
    }
}

#[tokio::test]
async fn result_is_stored_before_others_are_signed() {
    let (mut harness, signer) = harness(|key, harness| {
        let store = harness.store.clone();
        Arc::new(ObservingSigner {
            key,
            store,
            open: AtomicUsize::default(),
            requests: AtomicUsize::default(),
        })
    });
    harness.restart_with(|options| options.in_flight = 2);
    let ids = schedule(&harness, 4);
    harness.accept(ids[0]).await;
    harness.status(ids[0]).await;
    harness.mine(1);
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Committed);
    let [open, requests] =
        [&signer.open, &signer.requests].map(|count| count.load(Ordering::Relaxed));
    assert_eq!((open, requests), (2, 4));
}
