//! A signer on another machine, and what happens when it does not sign.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_core::future::BoxFuture;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::Outcome;
use grid_batch_evm::{
    Address, EvmOptions, GasAdminKey, RemoteSigner, Signature, SignerError, TransactionSigner,
};
use grid_batch_http::HttpOptions;
use grid_batch_test_chain::{Account, SignerFault, Web3Signer};
use grid_batch_withdrawals::{BatchAttempt, NewSignedTransaction, SigningStore};

use crate::{
    harness::{Harness, RESEND_AFTER, SEND, key_of},
    memory_store::MemoryStore,
};

/// A chain whose gas admin's key is at a remote signer.
fn start() -> (Harness, Web3Signer) {
    let mut harness = Harness::new();
    let signer = Web3Signer::start(harness.admin()).unwrap();
    let remote = remote_signer(signer.url(), harness.admin());
    harness.restart_with(|options| use_signer(options, remote));
    (harness, signer)
}

fn remote_signer(url: &str, account: &Account) -> RemoteSigner {
    let request_timeout = Duration::from_millis(500);
    let http = HttpOptions { request_timeout, ..HttpOptions::default() };
    RemoteSigner::new(url, account.address.parse().unwrap(), &http).unwrap()
}

fn use_signer(options: &mut EvmOptions, signer: impl TransactionSigner + 'static) {
    options.signers = vec![Arc::new(signer)];
}

#[tokio::test]
async fn remote_signer_signs_withdrawals() {
    let (harness, signer) = start();
    for _ in 0..2 {
        let id = harness.send_withdrawal().await;
        assert_eq!(harness.follow(id, 2).await, LedgerStatus::Committed);
    }
    assert_eq!(harness.polls().len(), 2);
    // One request is for the public keys.
    assert_eq!((signer.sign_requests(), signer.requests()), (2, 3));
}

#[tokio::test]
async fn withdrawal_waits_while_the_signer_does_not_sign() {
    let (harness, signer) = start();
    let id = harness.schedule("500");
    for (fault, reason) in [
        (SignerFault::Unavailable, "the signer is unavailable: "),
        (SignerFault::ConnectionClosed, "the signer is unavailable: "),
        (SignerFault::Hung, "the signer is unavailable: "),
        (SignerFault::NoKey, "has no key of 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
        (SignerFault::WrongKey, "and not as the gas admin 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb9"),
        (SignerFault::UpperHalf, "in the upper half"),
        (SignerFault::Garbage, "not a signature of 65 bytes"),
    ] {
        signer.set(fault);
        let answer = harness.send(id).await;
        let message = answer.message.unwrap();
        assert_eq!(answer.outcome, Outcome::Parked, "{fault:?}: {message}");
        assert_eq!(answer.retry_after, Some(Duration::from_secs(5)));
        assert!(message.starts_with("cannot sign with the key of the gas admin: "), "{message}");
        assert!(message.contains(reason), "{fault:?}: {message}");
        assert_eq!(harness.store.nonces(id), [], "{fault:?}");
    }
    assert_eq!(harness.proxy.calls(SEND), 0);
    signer.set(None);
    harness.accept(id).await;
    assert_eq!(harness.nonce(id).nonce, 0);
}

#[tokio::test]
async fn key_that_the_signer_loads_again_is_used() {
    let (harness, signer) = start();
    let first = harness.send_withdrawal().await;
    assert_eq!(harness.follow(first, 2).await, LedgerStatus::Committed);
    signer.set(SignerFault::NoKey);
    let id = harness.schedule("500");
    for reason in ["HTTP status 404", "has no key of 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"] {
        let answer = harness.send(id).await;
        let message = answer.message.unwrap();
        assert_eq!(answer.outcome, Outcome::Parked, "{message}");
        assert!(message.contains(reason), "{message}");
    }
    signer.set(None);
    harness.accept(id).await;
}

#[tokio::test]
async fn signer_that_cannot_be_reached_is_named() {
    let (mut harness, signer) = start();
    let url = signer.url().replace("http://", "http://user:word@");
    drop(signer);
    let remote = remote_signer(&url, harness.admin());
    harness.restart_with(|options| use_signer(options, remote));
    let answer = harness.send(harness.schedule("500")).await;
    let message = answer.message.unwrap();
    assert_eq!(answer.outcome, Outcome::Parked, "{message}");
    assert!(message.contains("http://127.0.0.1:") && !message.contains("word"), "{message}");
}

#[tokio::test]
async fn stored_transaction_is_sent_again_without_the_signer() {
    let (harness, signer) = start();
    let id = harness.send_withdrawal().await;
    signer.set(SignerFault::Unavailable);
    harness.chain.set_base_fee(60).unwrap();
    harness.advance_clock(RESEND_AFTER + Duration::from_secs(1));
    harness.send(id).await;
    assert_eq!(harness.nonce(id).transactions.len(), 1);
    assert_eq!((harness.sent().len(), harness.proxy.calls(SEND)), (1, 2));

    // A cancellation needs a new signature.
    harness.cancel(id);
    assert_eq!(harness.outcome(id).await, Outcome::Parked);
    signer.set(None);
    harness.accept(id).await;
    assert!(harness.nonce(id).transactions.pop().unwrap().signed.is_filler);
}

/// Assigns the next nonce to another withdrawal while it signs the first time.
#[derive(Debug)]
struct NonceTaker {
    key: GasAdminKey,
    store: Arc<MemoryStore>,
    other: Mutex<Option<BatchAttempt>>,
}

impl TransactionSigner for NonceTaker {
    fn address(&self) -> Address {
        self.key.address()
    }

    fn sign<'a>(&'a self, payload: &'a [u8]) -> BoxFuture<'a, Result<Signature, SignerError>> {
        if let Some(other) = self.other.lock().unwrap().take() {
            let mut sign = |nonce| Ok(transaction(nonce));
            self.store.assign_nonce(&other, 0, &mut sign).unwrap().unwrap();
        }
        self.key.sign(payload)
    }
}

fn transaction(nonce: u64) -> NewSignedTransaction {
    let (hash, bytes) = ([7; 32], vec![7]);
    NewSignedTransaction { nonce, hash, bytes, max_fee: 1, tip: 1, is_filler: false }
}

#[tokio::test]
async fn nonce_taken_while_signing_is_not_used_again() {
    let mut harness = Harness::new();
    let (id, other) = (harness.schedule("500"), harness.schedule("501"));
    let (batch_id, attempt_id) = harness.store.start_attempt(other);
    let other_attempt = BatchAttempt { service_id: harness.service_id(), batch_id, attempt_id };
    let taker = NonceTaker {
        key: key_of(harness.admin()),
        store: harness.store.clone(),
        other: Mutex::new(Some(other_attempt)),
    };
    harness.restart_with(|options| use_signer(options, taker));
    harness.send(id).await;
    assert_eq!(harness.nonce(other).nonce, 0);
    assert_eq!(harness.nonce(id).nonce, 1);
    assert_eq!(harness.nonce(id).transactions.len(), 1);
}
