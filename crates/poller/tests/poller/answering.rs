//! Handling of a ledger's answers.

use std::sync::Arc;

use grid_batch_core::batches::{
    BatchState::{Committed, Pending, Valid},
    LedgerStatus,
};
use grid_batch_poller::ShutdownHandle;

use crate::support::*;

fn is_checked(calls: &[Call], number: usize) -> bool {
    calls.iter().any(|call| matches!(call, Call::Checked(ids) if ids.contains(&batch(number))))
}

/// The batches whose status was written.
fn updated(store: &Store) -> Vec<String> {
    let groups = store.calls.get().into_iter().filter_map(|call| match call {
        Call::Update(groups) => Some(groups),
        _ => None,
    });
    groups.flatten().flat_map(|(_, reports)| reports).map(|(id, _)| id).collect()
}

#[test]
fn batch_without_a_status_is_marked_as_checked() {
    let store = Store::with(&["a", "a", "a"]);
    let ledger = Arc::new(Ledger::new(|_, _| {
        answer(vec![
            report(&batch(0), LedgerStatus::NotReported),
            report(&batch(2), LedgerStatus::Valid),
        ])
    }));
    let running = run(builder(&store, &ledger));
    store.wait_for_state(2, Valid);
    store.wait_for_calls(|calls| is_checked(calls, 0) && is_checked(calls, 1));
    let stats = running.counters();
    running.wait_for_shutdown().unwrap();
    assert_eq!(updated(&store), [batch(2)]);
    assert_eq!((stats.read().requests, stats.read().answered, stats.read().failed), (1, 1, 0));
    assert_eq!((stats.read().written, stats.read().not_reported), (1, 2));
}

#[test]
fn invalid_answer_is_not_used() {
    for wrong in [
        vec![report(&batch(0), LedgerStatus::Committed), report(&batch(7), LedgerStatus::Pending)],
        vec![
            report(&batch(0), LedgerStatus::Committed),
            report(&batch(1), LedgerStatus::Committed),
            report(&batch(1), LedgerStatus::Invalid),
        ],
    ] {
        let store = Store::with(&["a", "a"]);
        let ledger = Arc::new(Ledger::new(move |_, _| answer(wrong.clone())));
        let running = run(builder(&store, &ledger));
        store.wait_for_calls(|calls| is_checked(calls, 0) && is_checked(calls, 1));
        assert_eq!((running.stats().failed, running.stats().answered), (1, 0));
        running.wait_for_shutdown().unwrap();
        assert_eq!((updated(&store), store.state(0)), (Vec::new(), Pending));
    }
}

#[test]
fn failing_service_does_not_stop_others() {
    let store = Store::with(&["bad", "good"]);
    let ledger = Arc::new(Ledger::new(|service, ids| match service {
        "bad" => Box::pin(async { Err(unavailable()) }),
        _ => answer(all(ids, LedgerStatus::Committed)),
    }));
    let running = run(builder(&store, &ledger));
    store.wait_for_state(1, Committed);
    store.wait_for_calls(|calls| is_checked(calls, 0));
    store.clock.advance(HOUR);
    ledger
        .requests
        .wait_until(|requests| requests.iter().filter(|r| r.service == "bad").count() == 2);
    store.wait_for_calls(|calls| {
        calls.iter().filter(|c| matches!(c, Call::Checked(_))).count() == 2
    });
    assert_eq!(running.stats().failed, 2);
    running.wait_for_shutdown().unwrap();
}

#[test]
fn answers_that_arrive_together_are_written_together() {
    let store = Store::with(&["a", "b", "c"]);
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let ledger = Arc::new(Ledger::gated(&gate, LedgerStatus::Committed));
    // While the store blocks the leader, all answers arrive.
    let (arrived, opened) = (Arc::clone(&ledger), Arc::clone(&gate));
    let mut reads = 0;
    store.fail(move |name| {
        reads += usize::from(name == "due");
        if reads == 2 {
            arrived.wait_for(3);
            opened.add_permits(3);
            arrived.in_flight.wait_until(|(now, most)| (*now, *most) == (0, 3));
        }
        Ok(())
    });
    let running = run(builder(&store, &ledger));
    store.wait_for_calls(|calls| !calls.is_empty());
    running.wait_for_shutdown().unwrap();
    let calls = store.calls.get();
    // The last answer may have reached the leader later.
    assert!(matches!(&calls[0], Call::Update(groups) if groups.len() >= 2), "{calls:?}");
}
