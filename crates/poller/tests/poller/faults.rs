//! What fails or panics does not end the monitor, and loses nothing.

use std::{future::ready, sync::Arc};

use grid_batch_core::{
    BatchError,
    BatchState::{Committed, InDoubt, Pending},
    BatchStatusReader, Evidence, LedgerStatus, ShutdownHandle, StatusReport,
    mocks::MockEvidenceReader,
};

use crate::support::*;

fn broken() -> BatchError {
    BatchError::InternalError("as the test wishes".to_owned())
}

/// Fails the first calls with this name.
fn fail_first(store: &Store, name: &'static str, times: usize, how: fn() -> BatchError) {
    let mut left = times;
    store.fail(move |call| {
        if call != name || left == 0 {
            return Ok(());
        }
        left -= 1;
        Err(how())
    });
}

#[test]
fn a_store_that_fails_is_tried_again_whatever_it_fails_at() {
    for name in ["due", "of", "groups", "checked", "settle", "doubts"] {
        let store = Store::with(&["a"]);
        store.add("b", 1, InDoubt, SECOND * 60);
        fail_first(&store, name, 3, unavailable);
        let ledger = Arc::new(Ledger::new(|service, ids| match service {
            "a" => answer(all(ids, LedgerStatus::Committed)),
            _ => answer(all(ids, LedgerStatus::NotReported)),
        }));
        let mut detective = MockEvidenceReader::new();
        detective.expect_find_evidence().returning(|_| Box::pin(ready(Ok(Evidence::Committed))));
        let running =
            run(builder(&store, &ledger).with_evidence(store.clone(), Arc::new(detective)));
        running.trigger().trigger("a");
        // Doubts are read again when the batch is asked for again.
        store.pass_time_until(|| store.state(1) == Committed);
        store.wait_for_state(0, Committed);
        assert!(running.stats().store_failures >= 1, "{name}");
        running.wait_for_shutdown().unwrap();
    }
}

#[test]
fn an_answer_that_could_not_be_written_is_written_later_and_not_asked_for_again() {
    let store = Store::with(&["a"]);
    fail_first(&store, "groups", 5, unavailable);
    let ledger = Arc::new(Ledger::saying(LedgerStatus::Committed));
    let running = run(builder(&store, &ledger));
    store.wait_for_state(0, Committed);
    assert_eq!(running.stats().store_failures, 5);
    running.wait_for_shutdown().unwrap();
    assert_eq!(ledger.asked.get().len(), 1);
}

#[test]
fn statuses_that_the_store_refuses_keep_no_others_from_being_written() {
    let store = Store::with(&["bad", "good"]);
    store.fail(|call| match call {
        "groups" | "update bad" => Err(broken()),
        _ => Ok(()),
    });
    let ledger = Arc::new(Ledger::saying(LedgerStatus::Committed));
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
fn a_store_that_panics_is_used_again() {
    for name in ["due", "groups", "checked"] {
        let store = Store::with(&["a", "b"]);
        let mut left = 2;
        store.fail(move |call| {
            if call == name && left > 0 {
                left -= 1;
                panic!("as the test wishes");
            }
            Ok(())
        });
        let ledger = Arc::new(Ledger::new(|service, ids| match service {
            "a" => answer(all(ids, LedgerStatus::Committed)),
            _ => answer(Vec::new()),
        }));
        let running = run(builder(&store, &ledger));
        store.wait_for_state(0, Committed);
        store.pass_time_until(|| ledger.tally().get("b").is_some_and(|times| *times >= 2));
        assert!(running.stats().panics >= 1, "{name}");
        running.wait_for_shutdown().unwrap();
    }
}

#[test]
fn a_reader_that_panics_is_asked_again() {
    let store = Store::with(&["now", "later", "good"]);
    let ledger = Arc::new(Ledger::new(|service, ids| match service {
        "now" => panic!("as the test wishes"),
        "later" => Box::pin(async { panic!("as the test wishes") }),
        _ => answer(all(ids, LedgerStatus::Committed)),
    }));
    let running = run(builder(&store, &ledger));
    store.wait_for_state(2, Committed);
    store.pass_time_until(|| ledger.asked.get().len() >= 5);
    let counters = running.counters();
    running.wait_for_shutdown().unwrap();
    assert!(counters.read().panics >= 4, "{counters:?}");
    assert_eq!(counters.read().panics, counters.read().failed);
}

#[test]
fn a_reader_that_panics_over_its_connections_is_asked_again() {
    struct Shy(std::sync::atomic::AtomicUsize);

    impl BatchStatusReader for Shy {
        type Status = StatusReport;

        fn get_batch_statuses<'a>(&'a self, _: &'a str, ids: &'a [String]) -> BoxAnswer<'a> {
            answer(all(ids, LedgerStatus::Committed))
        }

        fn available_connections(&self) -> usize {
            let times = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert!(times > 2, "as the test wishes");
            1
        }
    }

    let store = Store::with(&["a"]);
    let ledger = Arc::new(Ledger::saying(LedgerStatus::NotReported));
    let running = run(builder(&store, &ledger).with_reader(Arc::new(Shy(0.into()))));
    store.wait_for_state(0, Committed);
    assert_eq!(running.stats().panics, 3);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn evidence_that_fails_or_panics_is_looked_for_again() {
    let store = Store::new();
    store.add("a", 0, InDoubt, SECOND * 60);
    let ledger = Arc::new(Ledger::saying(LedgerStatus::NotReported));
    let mut detective = MockEvidenceReader::new();
    let mut times = 0;
    detective.expect_find_evidence().returning(move |_| {
        times += 1;
        match times {
            1 => Box::pin(async { panic!("as the test wishes") }),
            2 => Box::pin(ready(Err(unavailable()))),
            _ => Box::pin(ready(Ok(Evidence::Committed))),
        }
    });
    let running = run(builder(&store, &ledger).with_evidence(store.clone(), Arc::new(detective)));
    store.pass_time_until(|| store.state(0) == Committed);
    let stats = running.counters();
    running.wait_for_shutdown().unwrap();
    assert!(stats.read().evidence_failed >= 2 && stats.read().panics >= 1, "{stats:?}");
}

#[test]
fn a_question_that_is_never_answered_is_given_up() {
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
