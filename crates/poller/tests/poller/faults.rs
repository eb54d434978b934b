//! Failures and panics neither end the monitor nor lose anything.

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use grid_batch_core::{
    BatchError,
    batches::{
        BatchState::{Committed, InDoubt, Pending},
        LedgerStatus, StatusReport,
    },
    evidence::Evidence,
    mocks::MockLedger,
};
use grid_batch_poller::{BatchStatusReader, ShutdownHandle};

use crate::support::*;

fn internal_error() -> BatchError {
    BatchError::InternalError("injected by the test".to_owned())
}

/// Makes the first `times` calls with this name fail.
fn fail_first(store: &Store, name: &'static str, times: usize, error: fn() -> BatchError) {
    let mut left = times;
    store.fail(move |call| {
        if call != name || left == 0 {
            return Ok(());
        }
        left -= 1;
        Err(error())
    });
}

#[test]
fn failed_store_call_is_retried() {
    for name in ["due", "of", "groups", "checked", "resolve", "unresolved"] {
        let store = Store::with(&["a"]);
        store.add("b", 1, InDoubt, SECOND * 60);
        fail_first(&store, name, 3, unavailable);
        let ledger = Arc::new(Ledger::new(|service, ids| match service {
            "a" => answer(all(ids, LedgerStatus::Committed)),
            _ => answer(all(ids, LedgerStatus::NotReported)),
        }));
        let mut reader = MockLedger::new();
        reader
            .expect_find_evidence()
            .returning(|_| Box::pin(ready(Ok(Evidence::Committed.into()))));
        let running = run(builder(&store, &ledger).with_evidence(store.clone(), Arc::new(reader)));
        running.trigger().trigger("a");
        // Unresolved batches are read again at the next request for their status.
        store.pass_time_until(|| store.state(1) == Committed);
        store.wait_for_state(0, Committed);
        assert!(running.stats().store_failures >= 1, "{name}");
        running.wait_for_shutdown().unwrap();
    }
}

#[test]
fn unwritten_answer_is_kept_and_written_later() {
    let store = Store::with(&["a"]);
    fail_first(&store, "groups", 5, unavailable);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let running = run(builder(&store, &ledger));
    store.wait_for_state(0, Committed);
    assert_eq!(running.stats().store_failures, 5);
    running.wait_for_shutdown().unwrap();
    assert_eq!(ledger.requests.get().len(), 1);
}

/// The ledger is asked again about a service that is locked in the store.
#[test]
fn statuses_of_a_locked_service_are_asked_for_again() {
    let store = Store::with(&["locked", "free"]);
    // The failures before the free service is written. The number of later ones depends on how soon the test ends them.
    let failures = Arc::new(AtomicU64::new(0));
    let (counted, mut is_free_written) = (Arc::clone(&failures), false);
    store.fail(move |call| {
        is_free_written |= call == "update free";
        let result = match call {
            "update locked" => Err(BatchError::Locked(vec!["locked".parse().unwrap()])),
            "groups" => Err(internal_error()),
            _ => Ok(()),
        };
        if result.is_err() && !is_free_written {
            counted.fetch_add(1, Relaxed);
        }
        result
    });
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let running = run(builder(&store, &ledger));
    store.wait_for_state(1, Committed);
    assert_eq!((store.state(0), running.stats().refused), (Pending, 0));
    store.fail(|_| Ok(()));
    store.pass_time_until(|| store.state(0) == Committed);
    // One more if the two answers arrived at different times.
    let failures = failures.load(Relaxed);
    assert!((2..=3).contains(&failures), "{failures}");
    assert!(running.stats().store_failures >= failures);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn refused_statuses_do_not_block_others() {
    let store = Store::with(&["bad", "good"]);
    store.fail(|call| match call {
        "groups" | "update bad" => Err(internal_error()),
        _ => Ok(()),
    });
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let running = run(builder(&store, &ledger));
    store.wait_for_state(1, Committed);
    store.wait_for_calls(|calls| calls.contains(&Call::Checked(vec![batch(0)])));
    assert_eq!((store.state(0), running.stats().refused), (Pending, 1));

    store.fail(|_| Ok(()));
    store.clock.advance(HOUR);
    store.wait_for_state(0, Committed);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn panicking_store_is_used_again() {
    for name in ["due", "groups", "checked"] {
        let store = Store::with(&["a", "b"]);
        let mut left = 2;
        store.fail(move |call| {
            if call == name && left > 0 {
                left -= 1;
                panic!("injected by the test");
            }
            Ok(())
        });
        let ledger = Arc::new(Ledger::new(|service, ids| match service {
            "a" => answer(all(ids, LedgerStatus::Committed)),
            _ => answer(Vec::new()),
        }));
        let running = run(builder(&store, &ledger));
        store.wait_for_state(0, Committed);
        store.pass_time_until(|| {
            ledger.requests_by_service().get("b").is_some_and(|times| *times >= 2)
        });
        assert!(running.stats().panics >= 1, "{name}");
        running.wait_for_shutdown().unwrap();
    }
}

#[test]
fn panicking_reader_is_used_again() {
    let store = Store::with(&["now", "later", "good"]);
    let ledger = Arc::new(Ledger::new(|service, ids| match service {
        "now" => panic!("injected by the test"),
        "later" => Box::pin(async { panic!("injected by the test") }),
        _ => answer(all(ids, LedgerStatus::Committed)),
    }));
    let running = run(builder(&store, &ledger));
    store.wait_for_state(2, Committed);
    store.pass_time_until(|| ledger.requests.get().len() >= 5);
    let counters = running.counters();
    running.wait_for_shutdown().unwrap();
    assert!(counters.read().panics >= 4, "{counters:?}");
    assert_eq!(counters.read().panics, counters.read().failed);
}

#[test]
fn panic_of_available_connections_is_survived() {
    struct PanicsAtFirst(std::sync::atomic::AtomicUsize);

    impl BatchStatusReader for PanicsAtFirst {
        type Status = StatusReport;

        fn get_batch_statuses<'a>(
            &'a self,
            _: &'a str,
            ids: &'a [String],
        ) -> BorrowedAnswerFuture<'a> {
            answer(all(ids, LedgerStatus::Committed))
        }

        fn available_connections(&self) -> usize {
            let times = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert!(times > 2, "injected by the test");
            1
        }
    }

    let store = Store::with(&["a"]);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::NotReported));
    let running = run(builder(&store, &ledger).with_reader(Arc::new(PanicsAtFirst(0.into()))));
    store.wait_for_state(0, Committed);
    assert_eq!(running.stats().panics, 3);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn failed_evidence_request_is_retried() {
    let store = Store::new();
    store.add("a", 0, InDoubt, SECOND * 60);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::NotReported));
    let mut reader = MockLedger::new();
    let mut times = 0;
    reader.expect_find_evidence().returning(move |_| {
        times += 1;
        match times {
            1 => Box::pin(async { panic!("injected by the test") }),
            2 => Box::pin(ready(Err(unavailable()))),
            _ => Box::pin(ready(Ok(Evidence::Committed.into()))),
        }
    });
    let running = run(builder(&store, &ledger).with_evidence(store.clone(), Arc::new(reader)));
    store.pass_time_until(|| store.state(0) == Committed);
    let stats = running.counters();
    running.wait_for_shutdown().unwrap();
    assert!(stats.read().evidence_failures >= 2 && stats.read().panics >= 1, "{stats:?}");
}

#[test]
fn request_without_an_answer_times_out() {
    let store = Store::with(&["a"]);
    let ledger = Arc::new(Ledger::new(|_, _| Box::pin(std::future::pending())));
    let short = grid_batch_poller::MonitorOptions {
        answer_limit: std::time::Duration::from_millis(5),
        ..options()
    };
    let running = run(builder(&store, &ledger).with_options(short));
    store.wait_for_calls(|calls| calls.contains(&Call::Checked(vec![batch(0)])));
    assert_eq!(running.stats().failed, 1);
    running.wait_for_shutdown().unwrap();
}
