//! Questions about transactions that waiting batches depend on.

use std::{
    future::ready,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::evidence::{EndedDependents, LookupLag, TransactionAnswers};
use grid_batch_core::mocks::{MockLedger, MockMissingTransactionStore};
use grid_batch_core::{BatchError, ItemId, ServiceId};
use grid_batch_poller::{
    Jobs, MissingTransactionMonitor, MissingTransactionOptions, ShutdownHandle,
};
use grid_batch_test_support::watched::WatchedValue;

use crate::support::until;

fn id(number: u8) -> ItemId {
    ItemId::from_bytes([number; 64])
}

fn service() -> ServiceId {
    "global".parse().unwrap()
}

fn options() -> MissingTransactionOptions {
    MissingTransactionOptions {
        interval: Duration::from_millis(1),
        ..MissingTransactionOptions::hold_after(Duration::from_secs(600))
    }
}

/// A store without lookups that wait.
fn mock_store() -> MockMissingTransactionStore {
    let mut store = MockMissingTransactionStore::new();
    store.expect_lookup_lag().returning(|| Ok(LookupLag::default()));
    store.expect_look_up_again().returning(|_, _| Ok(()));
    store
}

/// A store in which these transactions are missing until they are found.
fn store_that_misses(
    ids: &[ItemId],
    found: &Arc<WatchedValue<Vec<ItemId>>>,
) -> MockMissingTransactionStore {
    let missing = Arc::new(Mutex::new(ids.to_vec()));
    let mut store = mock_store();
    let still_missing = Arc::clone(&missing);
    store.expect_missing_transactions().returning(move |_, limit| {
        Ok(still_missing.lock().unwrap().iter().take(limit).copied().collect())
    });
    let found = Arc::clone(found);
    store.expect_found_at_ledger().returning(move |ids| {
        missing.lock().unwrap().retain(|id| !ids.contains(id));
        found.change(|found| found.extend(ids));
        Ok(vec![service()])
    });
    store.expect_hold_missing().returning(|_| Ok(0));
    store
}

#[test]
fn transactions_that_the_ledger_has_free_their_dependents() {
    let found = Arc::<WatchedValue<Vec<ItemId>>>::default();
    let store = store_that_misses(&[1, 2, 3].map(id), &found);
    let mut ledger = MockLedger::new();
    ledger.expect_look_up_transactions().returning(|ids| {
        let applied = ids.iter().filter(|it| **it != id(2)).copied().collect();
        Box::pin(ready(Ok(TransactionAnswers { applied, absent: Vec::new() })))
    });
    let woken = Arc::<WatchedValue<Vec<ServiceId>>>::default();
    let wake = Arc::clone(&woken);
    let ready = move |services: &[ServiceId]| {
        wake.change(|woken| woken.extend(services.iter().cloned()));
    };
    let monitor = MissingTransactionMonitor::new(store, Arc::new(ledger), ready, options());
    let running = monitor.run(&Jobs::start().unwrap());
    woken.wait_until(|woken| !woken.is_empty());
    running.wait_for_shutdown().unwrap();
    assert_eq!((found.get(), woken.get()), (vec![id(1), id(3)], vec![service()]));
}

/// Each batch depends on the one before. The end of one is the reason to ask about the next one.
#[test]
fn chain_of_dependents_ends_without_pauses() {
    const LENGTH: u8 = 50;
    let mut store = mock_store();
    let ended = Arc::<WatchedValue<Vec<ItemId>>>::default();
    let asked = Arc::clone(&ended);
    store.expect_missing_transactions().returning(move |_, _| {
        let next = u8::try_from(asked.get().len()).unwrap();
        Ok((next < LENGTH).then(|| id(next)).into_iter().collect())
    });
    let ends = Arc::clone(&ended);
    store.expect_absent_at_ledger().returning(move |ids| {
        ends.change(|ended| ended.extend(ids));
        Ok(EndedDependents { ended: 1, ready: [service()].into() })
    });
    store.expect_hold_missing().returning(|_| Ok(0));
    let mut ledger = MockLedger::new();
    ledger.expect_look_up_transactions().returning(|ids| {
        Box::pin(ready(Ok(TransactionAnswers { applied: Vec::new(), absent: ids.to_vec() })))
    });
    let options = MissingTransactionOptions { interval: Duration::from_secs(600), ..options() };
    let monitor = MissingTransactionMonitor::new(store, Arc::new(ledger), |_| (), options);
    let running = monitor.run(&Jobs::start().unwrap());
    ended.wait_until(|ended| ended.len() == usize::from(LENGTH));
    running.wait_for_shutdown().unwrap();
}

#[test]
fn ledger_that_fails_is_asked_again_and_batches_are_still_held() {
    let found = Arc::<WatchedValue<Vec<ItemId>>>::default();
    let mut store = mock_store();
    store.expect_missing_transactions().returning(|_, _| Ok(vec![id(1)]));
    let (held, found_ids) = (Arc::<WatchedValue<usize>>::default(), Arc::clone(&found));
    let holds = Arc::clone(&held);
    store.expect_hold_missing().returning(move |limit| {
        assert_eq!(limit, Duration::from_secs(600));
        holds.change(|holds| *holds += 1);
        Ok(0)
    });
    store.expect_found_at_ledger().returning(move |ids| {
        found_ids.change(|found| found.extend(ids));
        Ok(Vec::new())
    });
    let mut ledger = MockLedger::new();
    let failures = Mutex::new(3);
    ledger.expect_look_up_transactions().returning(move |ids| {
        let mut left = failures.lock().unwrap();
        *left -= i32::from(*left > 0);
        let answer = match *left {
            0 => Ok(TransactionAnswers { applied: ids.to_vec(), absent: Vec::new() }),
            _ => Err(BatchError::Unavailable("of the test".to_owned())),
        };
        Box::pin(ready(answer))
    });
    let monitor = MissingTransactionMonitor::new(store, Arc::new(ledger), |_| (), options());
    let running = monitor.run(&Jobs::start().unwrap());
    found.wait_until(|found| !found.is_empty());
    held.wait_until(|holds| *holds >= 3);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn lag_is_read_while_the_ledger_does_not_answer() {
    let mut store = MockMissingTransactionStore::new();
    let lag = LookupLag { waiting: 7, longest: Duration::from_secs(9) };
    store.expect_lookup_lag().returning(move || Ok(lag));
    store.expect_look_up_again().returning(|_, _| Ok(()));
    store.expect_missing_transactions().returning(|_, _| Ok(vec![id(1)]));
    store.expect_hold_missing().returning(|_| Ok(0));
    let mut ledger = MockLedger::new();
    ledger
        .expect_look_up_transactions()
        .returning(|_| Box::pin(ready(Err(BatchError::Unavailable("of the test".to_owned())))));
    let monitor = MissingTransactionMonitor::new(store, Arc::new(ledger), |_| (), options());
    let progress = monitor.progress();
    let running = monitor.run(&Jobs::start().unwrap());
    until(|| progress.read().lag == lag);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn monitor_stops_while_the_ledger_does_not_answer() {
    let found = Arc::<WatchedValue<Vec<ItemId>>>::default();
    let store = store_that_misses(&[id(1)], &found);
    let asked = Arc::<WatchedValue<bool>>::default();
    let begun = Arc::clone(&asked);
    let mut ledger = MockLedger::new();
    ledger.expect_look_up_transactions().returning(move |_| {
        begun.change(|asked| *asked = true);
        Box::pin(std::future::pending())
    });
    let monitor = MissingTransactionMonitor::new(store, Arc::new(ledger), |_| (), options());
    let running = monitor.run(&Jobs::start().unwrap());
    asked.wait_until(|asked| *asked);
    running.wait_for_shutdown().unwrap();
}
