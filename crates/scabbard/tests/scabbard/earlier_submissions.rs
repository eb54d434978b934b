//! Batches that are not sent because the ledger has them already.

use std::{collections::HashSet, time::Duration};

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::{Evidence, UnresolvedBatch};
use grid_batch_core::ledger::{AttemptId, Ledger, Outcome, Submission, SubmissionAnswer};
use grid_batch_core::{ItemId, PeerService, ServiceId};
use grid_batch_ledger_sim::{Fault, LedgerSim, RequestKind, When};
use grid_batch_protocol::{BatchBuilder, Message};
use tokio::time::timeout;

use crate::{
    batches::{SERVICE, batch, id, key, scope, service, submission, transaction_id},
    memory_history::MemoryHistory,
    nodes::unused_address,
    test_ledger::{TestLedger, catch_up, next, read_in_background},
};

async fn send(ledger: &TestLedger, submission: &Submission<ServiceId>) -> SubmissionAnswer {
    ledger.scabbard.send(&ledger.sim.url(), submission).await
}

fn assert_not_sent(answer: &SubmissionAnswer, reason: &str) {
    assert_eq!((answer.outcome, answer.status), (Outcome::Ambiguous, None));
    let message = answer.message.as_deref().unwrap();
    assert!(message.starts_with("not sent: ") && message.contains(reason), "{message}");
}

/// A batch with the transactions of the first two batches.
fn batch_of_both() -> (String, Submission<ServiceId>) {
    let [one, two] = [1, 2].map(|number| batch(number).transactions.remove(0));
    let both = BatchBuilder::new().transaction(one).transaction(two).sign(&key());
    let id = both.header_signature.clone();
    let submission = Submission::new(id.clone(), service(), both.encode_to_vec());
    (id, submission.with_attempt_id(AttemptId { attempt: 1, epoch: 1 }))
}

#[tokio::test]
async fn batch_with_an_applied_transaction_is_not_sent() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_past_the_adapter(1).await;
    assert_eq!(next(&mut events).await, transaction_id(1));
    let (id, both) = batch_of_both();
    let answer = send(&ledger, &both).await;
    assert_not_sent(&answer, "committed 1 of its 2 transactions");
    assert_eq!(ledger.sim.times_received(&id.parse().unwrap()), 0);
}

/// The batch was committed before it was first handed to the sender, and its status is forgotten.
#[tokio::test]
async fn events_of_all_transactions_prove_an_unsent_batch() {
    let ledger = TestLedger::new();
    ledger.send_past_the_adapter(1).await;
    ledger.restart().await;
    let mut events = ledger.subscribe().await;
    assert_eq!(next(&mut events).await, transaction_id(1));
    assert_not_sent(&send(&ledger, &submission(1, 1)).await, "1 of its 1 transactions");
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
    assert_eq!(ledger.times_received(1), 1);
}

/// Another client committed the batches, and the node has forgotten their statuses.
async fn committed_by_another_client(count: u32) -> (TestLedger, HashSet<String>) {
    let ledger = TestLedger::new().with_service_history(&MemoryHistory::new(None));
    for number in 0..count {
        ledger.send_past_the_adapter(number).await;
    }
    ledger.restart().await;
    let mut events = ledger.subscribe().await;
    let mut replayed = HashSet::from([next(&mut events).await]);
    while let Ok(transaction) = timeout(Duration::from_millis(500), next(&mut events)).await {
        replayed.insert(transaction);
    }
    read_in_background(events);
    (ledger, replayed)
}

#[tokio::test]
async fn no_batch_of_a_whole_replay_is_sent_again() {
    let (ledger, replayed) = committed_by_another_client(63).await;
    assert_eq!(replayed.len(), 63);
    for number in [0, 31, 62] {
        assert_not_sent(&send(&ledger, &submission(number, 1)).await, "1 of its 1 transactions");
        assert_eq!(ledger.times_received(number), 1);
    }
}

/// This batch cannot be distinguished from a new one, so neither is sent.
#[tokio::test]
async fn batch_that_a_long_replay_omits_is_not_sent_again() {
    let (ledger, replayed) = committed_by_another_client(150).await;
    let is_replayed = |number: &u32| replayed.contains(&transaction_id(*number));
    let (known, omitted): (Vec<u32>, Vec<u32>) = (0..150).partition(is_replayed);
    assert_not_sent(&send(&ledger, &submission(known[0], 1)).await, "1 of its 1 transactions");
    assert_eq!(ledger.times_received(known[0]), 1);
    for number in [omitted[0], 200] {
        let answer = send(&ledger, &submission(number, 1)).await;
        assert_eq!((answer.outcome, answer.status), (Outcome::NotProvedNew, None));
    }
    assert_eq!(ledger.times_received(omitted[0]), 1);
}

#[tokio::test]
async fn events_of_some_transactions_do_not_prove_an_unsent_batch() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_past_the_adapter(1).await;
    assert_eq!(next(&mut events).await, transaction_id(1));
    let (id, both) = batch_of_both();
    assert_not_sent(&send(&ledger, &both).await, "1 of its 2 transactions");
    // Later, another client sends the other one.
    ledger.send_past_the_adapter(2).await;
    assert_eq!(next(&mut events).await, transaction_id(2));
    let unresolved = UnresolvedBatch {
        batch_id: id.parse().unwrap(),
        transaction_ids: [1, 2].map(|number| transaction_id(number).parse().unwrap()).to_vec(),
        ..ledger.unresolved(1)
    };
    let found = ledger.scabbard.find_evidence(&unresolved).await.unwrap();
    assert_eq!(found.evidence, Evidence::Inconclusive);
}

#[tokio::test]
async fn batch_that_a_node_has_is_not_sent() {
    for fault in [None, Some(Fault::Invalid), Some(Fault::DroppedValid)] {
        let ledger = TestLedger::new();
        if let Some(fault) = fault {
            ledger.sim.inject(fault, When::Next(1));
        }
        ledger.send_past_the_adapter(1).await;
        assert_not_sent(&send(&ledger, &submission(1, 1)).await, "a node has the batch already");
        assert_eq!(ledger.times_received(1), 1);
        // From now on, this is known from memory.
        if fault.is_none() {
            ledger.sim.restart();
            let answer = send(&ledger, &submission(1, 1)).await;
            assert_not_sent(&answer, "a node has reported the batch as committed");
            assert_eq!(ledger.evidence(1).await, Evidence::Committed);
        }
    }
}

#[tokio::test]
async fn nodes_are_asked_about_every_batch() {
    let ledger = TestLedger::new();
    assert_eq!(ledger.send(1).await, Outcome::Accepted);
    ledger.send_past_the_adapter(2).await;
    assert_not_sent(&send(&ledger, &submission(2, 1)).await, "a node has the batch already");
    assert_eq!(ledger.times_received(2), 1);
    assert_eq!(ledger.send(3).await, Outcome::Accepted);
}

#[tokio::test]
async fn later_attempt_is_not_sent_if_another_client_sent_the_batch() {
    let ledger = TestLedger::new();
    assert_eq!(ledger.send_with_fault(Fault::Busy, 1).await, Outcome::Busy);
    ledger.sim.inject(Fault::DroppedValid, When::Next(1));
    ledger.send_past_the_adapter(1).await;
    assert_not_sent(&send(&ledger, &submission(1, 2)).await, "a node has the batch already");
    assert_eq!(ledger.times_received(1), 2);
}

#[tokio::test]
async fn dropped_batch_is_sent_again_in_a_later_attempt() {
    let ledger = TestLedger::new();
    assert_eq!(ledger.send_with_fault(Fault::DroppedValid, 1).await, Outcome::Accepted);
    assert_eq!(ledger.send_again(1, 2).await, Outcome::Accepted);
}

#[tokio::test]
async fn pending_or_invalid_batch_is_not_sent_in_a_later_attempt() {
    let pending = TestLedger::with(|ledger| ledger.pending_for(Duration::from_secs(60)), []);
    assert_eq!(pending.send_with_fault(Fault::ResetAfter, 1).await, Outcome::Ambiguous);
    let invalid = TestLedger::new();
    assert_eq!(invalid.send_with_fault(Fault::Invalid, 1).await, Outcome::Accepted);
    for ledger in [pending, invalid] {
        assert_not_sent(&send(&ledger, &submission(1, 2)).await, "a node has the batch already");
        assert_eq!(ledger.times_received(1), 1);
    }
}

#[tokio::test]
async fn answer_of_a_peer_alone_does_not_allow_a_post() {
    let peer = LedgerSim::scabbard([scope()]).start().unwrap();
    let at_peer = || PeerService { service: scope(), peer: scope(), url: peer.url() };
    let ledger = TestLedger::with_peers(|ledger| ledger, [], |_, _| vec![at_peer()]);
    ledger.sim.inject(Fault::StatusesFail, When::Always);
    assert_eq!(ledger.send(1).await, Outcome::NotSent);
    assert_eq!(ledger.times_received(1), 0);
    ledger.sim.heal();
    assert_eq!(ledger.send(1).await, Outcome::Accepted);
}

async fn ask_ahead(ledger: &TestLedger, numbers: &[u32]) {
    let ids: Vec<ItemId> = numbers.iter().map(|number| id(*number).parse().unwrap()).collect();
    ledger.scabbard.ask_ahead(&SERVICE.parse().unwrap(), &ids).await;
}

#[tokio::test]
async fn batch_that_was_asked_about_ahead_is_sent_at_once() {
    let ledger = TestLedger::new();
    ask_ahead(&ledger, &[1, 2]).await;
    ask_ahead(&ledger, &[2]).await;
    assert_eq!(questions(&ledger), 1, "one request for both, and no other");
    ledger.sim.inject(Fault::StatusesFail, When::Always);
    assert_eq!(ledger.send(1).await, Outcome::Accepted);
    ledger.advance(2);
    assert_eq!(ledger.send(2).await, Outcome::NotSent, "the answer is too old");
}

#[tokio::test]
async fn answer_counts_longer_while_events_are_live() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    catch_up(&mut events);
    ask_ahead(&ledger, &[1, 2, 3]).await;
    ledger.advance(20);
    assert_eq!(ledger.send(1).await, Outcome::Accepted);
    assert_eq!(ledger.questions(1), 1);
    ledger.send_past_the_adapter(2).await;
    assert_eq!([next(&mut events).await, next(&mut events).await], [1, 2].map(transaction_id));
    catch_up(&mut events);
    assert_not_sent(&send(&ledger, &submission(2, 1)).await, "1 of its 1 transactions");
    drop(events);
    ledger.send_past_the_adapter(3).await;
    assert_not_sent(&send(&ledger, &submission(3, 1)).await, "a node has the batch already");
}

/// The number of status requests.
fn questions(ledger: &TestLedger) -> usize {
    ledger.sim.requests().iter().filter(|one| one.kind == RequestKind::Statuses).count()
}

/// A ledger that was sent the first batch and is to be asked about these with the next status request.
async fn with_next_batches(numbers: &[u32]) -> TestLedger {
    let ledger = TestLedger::new();
    read_in_background(ledger.subscribe().await);
    assert_eq!(ledger.send(1).await, Outcome::Accepted);
    ask_ahead(&ledger, numbers).await;
    assert_eq!(questions(&ledger), 1, "only the one before the POST");
    ledger
}

#[tokio::test]
async fn next_batches_are_part_of_the_status_request() {
    let ledger = with_next_batches(&[2, 3]).await;
    let reports = ledger.statuses([1]).await.unwrap();
    assert_eq!(reports.iter().map(|report| &report.batch_id).collect::<Vec<_>>(), [&id(1)]);
    for number in [2, 3] {
        assert_eq!(ledger.send(number).await, Outcome::Accepted);
    }
    assert_eq!(questions(&ledger), 2, "before the first POST, and for the status of that batch");
    // The first one has ended, so no other status request is expected.
    ledger.statuses([3]).await.unwrap();
    ask_ahead(&ledger, &[4]).await;
    assert_eq!(ledger.questions(4), 1);
}

#[tokio::test]
async fn next_batch_that_a_status_request_finds_is_not_sent() {
    let ledger = with_next_batches(&[2]).await;
    ledger.sim.inject(Fault::DroppedValid, When::Next(1));
    ledger.send_past_the_adapter(2).await;
    assert_eq!(ledger.status(1).await, LedgerStatus::Committed);
    assert_not_sent(&send(&ledger, &submission(2, 1)).await, "a node has the batch already");
    assert_eq!(ledger.times_received(2), 1);
}

#[tokio::test]
async fn next_batch_is_asked_about_if_the_status_request_failed() {
    let ledger = with_next_batches(&[2]).await;
    ledger.sim.inject(Fault::StatusesFail, When::Next(1));
    ledger.statuses([1]).await.unwrap_err();
    let before = questions(&ledger);
    assert_eq!(ledger.send(2).await, Outcome::Accepted);
    assert_eq!(questions(&ledger), before + 1);
}

/// The status of the batch under way is the answer of one node.
#[tokio::test]
async fn all_nodes_are_asked_about_the_next_batch() {
    let other = LedgerSim::scabbard([scope()]).start().unwrap();
    let ledger = TestLedger::with(|ledger| ledger, [other.url()]);
    read_in_background(ledger.subscribe().await);
    assert_eq!(ledger.send(1).await, Outcome::Accepted);
    let before = other.requests().len();
    ask_ahead(&ledger, &[2]).await;
    assert_eq!((ledger.questions(2), other.requests().len()), (1, before + 1));
}

#[tokio::test]
async fn batch_that_is_found_ahead_is_asked_about_again() {
    let ledger = TestLedger::new();
    ledger.sim.inject(Fault::DroppedValid, When::Next(1));
    ledger.send_past_the_adapter(1).await;
    ask_ahead(&ledger, &[1]).await;
    assert_not_sent(&send(&ledger, &submission(1, 1)).await, "a node has the batch already");
}

#[tokio::test]
async fn batch_is_not_sent_before_events_are_replayed() {
    let ledger = TestLedger::new();
    let mut events = ledger.scabbard.events(SERVICE).await.unwrap();
    catch_up(&mut events);
    let answer = send(&ledger, &submission(1, 1)).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Busy, None));
    assert_eq!(answer.retry_after, Some(Duration::from_millis(300)));
    assert_eq!(ledger.times_received(1), 0);
    ledger.advance(1);
    assert_eq!(ledger.send(1).await, Outcome::Accepted);
    assert_eq!(ledger.questions(1), 1);
}

#[tokio::test]
async fn attempt_that_was_sent_is_not_sent_again() {
    let ledger = TestLedger::new();
    assert_eq!(ledger.send_with_fault(Fault::ResetBefore, 1).await, Outcome::Ambiguous);
    assert_not_sent(&send(&ledger, &submission(1, 1)).await, "this attempt was sent");
    assert_eq!(ledger.send_again(1, 2).await, Outcome::Accepted);
    assert_not_sent(&send(&ledger, &submission(1, 1)).await, "this attempt was sent");

    assert_eq!(ledger.send_with_fault(Fault::ResetAfter, 2).await, Outcome::Ambiguous);
    assert_not_sent(&send(&ledger, &submission(2, 1)).await, "this attempt was sent");
    assert_not_sent(&send(&ledger, &submission(2, 2)).await, "a node has the batch already");
    for number in [3, 3] {
        assert_eq!(ledger.send_with_fault(Fault::Busy, number).await, Outcome::Busy);
    }
    assert_eq!(ledger.send(3).await, Outcome::Accepted);
}

#[tokio::test]
async fn batch_is_not_sent_before_a_node_has_answered() {
    let ledger = TestLedger::with(|ledger| ledger, [unused_address()]);
    ledger.sim.inject(Fault::StatusesFail, When::Next(1));
    let answer = send(&ledger, &submission(1, 1)).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::NotSent, None));
    assert!(answer.message.unwrap().contains("cannot ask whether the ledger has the batch"));
    assert_eq!(ledger.times_received(1), 0);
    assert_eq!(ledger.send(1).await, Outcome::Accepted, "one node is enough");
}
