//! The pace of polling of services that have no event socket, because there are more services than sockets.

use std::time::Duration;

use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::{ItemId, Timestamp};
use grid_batch_ledger_sim::{Fault, RequestKind, When};
use grid_batch_test_support::{batches::signed_batches, wait::wait_until};

use crate::harness::{BatchHarness, count_in_state};

const BATCHES: usize = 6;
/// How long the ledger takes for a batch.
const BLOCK_TIME: Duration = Duration::from_millis(1_500);
/// The first delay of a poll that failed.
const INTERVAL: Duration = Duration::from_millis(100);
/// The settings of a real ledger, with an event socket for one of three services.
const FLAGS: &[(&str, &str)] = &[
    ("--testing-longest-interval", "60s"),
    ("--testing-quiet-after", "60s"),
    ("--ledger-event-sockets", "1"),
];

/// When the ledger was asked about a batch.
fn polls_of(harness: &BatchHarness, batch: &ItemId) -> Vec<Timestamp> {
    let requests = harness.ledger.requests().into_iter();
    let polls = requests.filter(|request| request.kind == RequestKind::Statuses);
    polls.filter(|poll| poll.batch_ids.contains(batch)).map(|poll| poll.received_at).collect()
}

/// With an interval that does not adapt, each batch would be polled fifteen times.
#[test]
fn services_without_a_socket_are_polled_at_the_ledgers_pace() {
    let harness = BatchHarness::scabbard_with(3, |ledger| {
        ledger.pending_for(BLOCK_TIME).valid_for(Duration::ZERO)
    });
    let server = harness.serve_with(&[FLAGS, &[("--poll-interval", "1s")]].concat());
    let batches = signed_batches(&harness.services, BATCHES);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    let polls: Vec<usize> =
        batches.iter().map(|batch| polls_of(&harness, &batch.batch_id).len()).collect();
    println!("polls of each batch: {polls:?}");
    let last = &polls[polls.len() - harness.services.len()..];
    assert!(last.iter().all(|count| *count <= 9), "{polls:?}");
    let store = harness.store();
    for batch in &batches[batches.len() - harness.services.len()..] {
        let stored = store.find(&batch.batch_id).unwrap().remove(0);
        let took = stored.ended_at.unwrap().since(stored.submitted_at.unwrap());
        assert!(took < BLOCK_TIME * 2, "{took:?}");
    }
    server.stop();
}

/// With delays that do not grow, there would be more than a hundred polls in the time.
#[test]
fn failed_polls_are_repeated_after_growing_delays() {
    let harness = BatchHarness::scabbard_with(3, |l| l.pending_for(Duration::from_hours(1)));
    let flags = [FLAGS, &[("--poll-interval", "100ms")]].concat();
    let server = harness.serve_with(&flags);
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    let store = harness.store();
    wait_until("all batches are at the ledger", || {
        count_in_state(&store, BatchState::Pending) == batches.len()
    });
    harness.ledger.inject(Fault::StatusesFail, When::Always);
    for batch in &batches {
        let id = &batch.batch_id;
        let longest_gap = || {
            let polls = polls_of(&harness, id);
            polls.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap_or_default()
        };
        wait_until("the delay has grown", || longest_gap() >= INTERVAL * 8);
        let polls = polls_of(&harness, id).len();
        println!("{polls} polls until the delay was {:?}", longest_gap());
        assert!(polls <= 40, "{polls}");
    }
    server.stop();
}
