//! Batches that are not sent, because the ledger has them already.

use grid_batch_core::{
    AttemptId, Evidence, Outcome, Submission, SubmissionAnswer, SubmissionSender,
};
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_protocol::{BatchBuilder, Message};

use crate::{
    batches::{batch, key, scope, submission, transaction_id},
    nodes::unused_address,
    test_ledger::{TestLedger, next},
};

async fn send(
    ledger: &TestLedger,
    submission: &Submission<grid_batch_core::ServiceScopeId>,
) -> SubmissionAnswer {
    ledger.scabbard.sender().send(&ledger.sim.url(), submission).await
}

fn assert_not_sent(answer: &SubmissionAnswer, reason: &str) {
    assert_eq!((answer.outcome, answer.status), (Outcome::Ambiguous, None));
    let message = answer.message.as_deref().unwrap();
    assert!(message.starts_with("not sent: ") && message.contains(reason), "{message}");
}

#[tokio::test]
async fn batch_with_an_applied_transaction_is_not_sent() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_past_the_adapter(1).await;
    assert_eq!(next(&mut events).await, transaction_id(1));
    let [one, two] = [1, 2].map(|number| batch(number).transactions.remove(0));
    let both = BatchBuilder::new().transaction(one).transaction(two).sign(&key());
    let id = both.header_signature.clone();
    let submission = Submission::new(id.clone(), scope(), both.encode_to_vec());
    let attempt_id = AttemptId { attempt: 1, epoch: 1 };
    let answer = send(&ledger, &submission.with_attempt_id(attempt_id)).await;
    assert_not_sent(&answer, "committed 1 of its 2 transactions");
    assert_eq!(ledger.sim.times_received(&id.parse().unwrap()), 0);
}

#[tokio::test]
async fn events_from_before_do_not_prove_an_unsent_batch() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_past_the_adapter(1).await;
    assert_eq!(next(&mut events).await, transaction_id(1));
    assert_not_sent(&send(&ledger, &submission(1, 1)).await, "1 of its 1 transactions");
    ledger.sim.inject(Fault::StatusesFail, When::Next(1));
    assert_eq!(ledger.evidence_after(1, 3_600).await, Evidence::Committed, "the node reports it");
    assert_eq!(ledger.times_received(1), 1);

    ledger.send_past_the_adapter(2).await;
    assert_eq!(next(&mut events).await, transaction_id(2));
    assert_not_sent(&send(&ledger, &submission(2, 1)).await, "1 of its 1 transactions");
    ledger.sim.inject(Fault::StatusesFail, When::Always);
    assert_eq!(ledger.evidence_after(2, 3_600).await, Evidence::Inconclusive);
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
        // It is found in memory from now on.
        if fault.is_none() {
            ledger.sim.restart();
            let answer = send(&ledger, &submission(1, 1)).await;
            assert_not_sent(&answer, "a node has reported the batch as committed");
            assert_eq!(ledger.evidence(1).await, Evidence::Committed);
        }
    }
}

#[tokio::test]
async fn nodes_are_asked_until_they_do_not_have_a_batch() {
    let ledger = TestLedger::new();
    for number in [1, 2, 4] {
        ledger.send_past_the_adapter(number).await;
    }
    for number in [1, 2] {
        assert_eq!(ledger.send(number).await, Outcome::Ambiguous);
    }
    assert_eq!(ledger.send(3).await, Outcome::Accepted);
    assert_eq!(ledger.send(4).await, Outcome::Accepted, "the batches before it were new");
    // The service comes from another owner.
    ledger.send_past_the_adapter(5).await;
    let submission = submission(5, 1).with_attempt_id(AttemptId { attempt: 1, epoch: 2 });
    assert_not_sent(&send(&ledger, &submission).await, "a node has the batch already");
}

#[tokio::test]
async fn attempt_that_was_sent_is_not_sent_again() {
    let ledger = TestLedger::new();
    for (number, fault) in [(1, Fault::ResetBefore), (2, Fault::ResetAfter)] {
        assert_eq!(ledger.send_with_fault(fault, number).await, Outcome::Ambiguous);
        assert_not_sent(&send(&ledger, &submission(number, 1)).await, "this attempt was sent");
        assert_eq!(ledger.send_again(number, 2).await, Outcome::Accepted);
        assert_not_sent(&send(&ledger, &submission(number, 1)).await, "this attempt was sent");
    }
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
