use std::sync::Mutex;

use grid_batch_core::{
    AttemptId, Evidence, EvidenceReader, LedgerStatus, Outcome, UnresolvedBatch,
};
use grid_batch_ledger_sim::{Fault, SentTwice, When};
use serde_json::json;

use crate::{
    batches::{id, transaction_id},
    node::{Conduct, Node, answer},
    nodes::nobody,
    world::{World, broken, catch_up, next},
};

const HOUR: u64 = 3_600;

#[tokio::test]
async fn a_status_proves_a_commit_and_is_remembered() {
    let world = World::new();
    world.send(1).await;
    assert_eq!(world.evidence(1).await, Evidence::Committed);
    world.restart().await;
    assert_eq!(world.status(1).await, LedgerStatus::NotReported);
    assert_eq!(world.evidence(1).await, Evidence::Committed);
}

#[tokio::test]
async fn an_event_proves_a_commit_though_the_node_forgets_it() {
    let world = World::new();
    let mut events = world.listen().await;
    assert_eq!(world.send_into(Fault::ResetAfter, 1).await, Outcome::Ambiguous);
    assert_eq!(next(&mut events).await, transaction_id(1));
    world.restart().await;
    assert_eq!(world.evidence(1).await, Evidence::Committed);
}

#[tokio::test]
async fn an_event_that_comes_after_a_restart_proves_what_it_shows() {
    let world = World::new();
    world.send(1).await;
    world.restart().await;
    assert_eq!(world.evidence(1).await, Evidence::Inconclusive);
    let mut events = world.listen().await;
    assert_eq!(next(&mut events).await, transaction_id(1));
    assert_eq!(world.evidence(1).await, Evidence::Committed);
}

#[tokio::test]
async fn a_restart_that_forgets_everything_proves_nothing() {
    let world = World::new();
    let mut events = world.listen().await;
    world.ledger.inject(Fault::EventsBroken, When::Next(1));
    world.send(1).await;
    world.restart().await;
    broken(&mut events).await;
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn a_batch_is_absent_when_nothing_was_missed_for_long_enough() {
    let world = World::new();
    let mut events = world.listen().await;
    assert_eq!(world.send_into(Fault::ResetBefore, 1).await, Outcome::Ambiguous);
    catch_up(&mut events);
    assert_eq!(world.evidence(1).await, Evidence::Inconclusive);
    world.pass(59);
    assert_eq!(world.evidence(1).await, Evidence::Inconclusive);
    world.pass(1);
    assert_eq!(world.evidence(1).await, Evidence::Absent);

    assert_eq!(world.send_again(1, 2).await, Outcome::Accepted);
    assert_eq!(next(&mut events).await, transaction_id(1));
    assert_eq!(world.evidence(1).await, Evidence::Committed);
    assert_eq!(world.applied(), 1);
}

#[tokio::test]
async fn absence_without_a_socket_proves_nothing() {
    let world = World::new();
    world.send_into(Fault::ResetBefore, 1).await;
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn a_socket_that_was_opened_after_the_post_proves_nothing_by_silence() {
    let world = World::new();
    world.send_into(Fault::ResetBefore, 1).await;
    let mut events = world.listen().await;
    catch_up(&mut events);
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn a_socket_that_broke_proves_nothing_by_silence_though_there_is_another() {
    let world = World::new();
    let mut events = world.listen().await;
    world.send_into(Fault::ResetBefore, 1).await;
    world.send_into(Fault::EventsBroken, 2).await;
    broken(&mut events).await;
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Inconclusive);
    let mut events = world.listen().await;
    catch_up(&mut events);
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn a_socket_that_was_let_go_proves_nothing_by_silence() {
    let world = World::new();
    let mut events = world.listen().await;
    world.send_into(Fault::ResetBefore, 1).await;
    catch_up(&mut events);
    drop(events);
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn silence_counts_only_when_all_that_came_was_heard() {
    let world = World::new();
    let mut events = world.listen().await;
    world.send_into(Fault::ResetBefore, 1).await;
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Inconclusive);
    catch_up(&mut events);
    assert_eq!(world.evidence(1).await, Evidence::Absent);
    world.send(2).await;
    assert_eq!(next(&mut events).await, transaction_id(2));
    assert_eq!(world.evidence(1).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn a_later_attempt_is_watched_only_if_all_before_certainly_were_in_vain() {
    let world = World::new();
    let mut events = world.listen().await;
    world.ledger.inject(Fault::ResetBefore, When::Next(2));
    assert_eq!(world.send_again(1, 2).await, Outcome::Ambiguous);
    assert_eq!(world.send_again(2, 1).await, Outcome::Ambiguous);
    for (attempt, fault) in [(1, Fault::Busy), (2, Fault::Unauthorized), (3, Fault::ResetBefore)] {
        world.ledger.inject(fault, When::Next(1));
        world.send_again(3, attempt).await;
    }
    catch_up(&mut events);
    for number in [1, 2, 3] {
        world.evidence(number).await;
    }
    world.pass(60);
    assert_eq!(world.evidence(1).await, Evidence::Inconclusive);
    assert_eq!(world.evidence(2).await, Evidence::Absent);
    assert_eq!(world.evidence(3).await, Evidence::Absent);
}

#[tokio::test]
async fn what_is_under_way_is_present() {
    let world = World::with(|ledger| ledger.pending_for(std::time::Duration::from_secs(1)), []);
    world.send(1).await;
    assert_eq!(world.evidence(1).await, Evidence::Present);
}

#[tokio::test]
async fn a_batch_that_was_dropped_is_absent_after_a_while_and_committed_when_sent_again() {
    let world = World::new();
    let mut events = world.listen().await;
    assert_eq!(world.send_into(Fault::DroppedValid, 1).await, Outcome::Accepted);
    catch_up(&mut events);
    assert_eq!(world.status(1).await, LedgerStatus::Valid);
    world.pass(89);
    assert_eq!(world.evidence(1).await, Evidence::Present);
    world.pass(1);
    assert_eq!(world.evidence(1).await, Evidence::Absent);

    world.send_again(1, 2).await;
    assert_eq!(world.evidence(1).await, Evidence::Committed);
    assert_eq!(world.applied(), 1);
}

#[tokio::test]
async fn a_batch_that_is_sent_again_has_its_time_again() {
    let world = World::new();
    let mut events = world.listen().await;
    world.ledger.inject(Fault::DroppedValid, When::Always);
    world.send(1).await;
    catch_up(&mut events);
    assert_eq!(world.evidence_after(1, 90).await, Evidence::Absent);
    world.send_again(1, 2).await;
    assert_eq!(world.status(1).await, LedgerStatus::Valid);
    assert_eq!(world.evidence_after(1, 89).await, Evidence::Present);
    world.pass(1);
    assert_eq!(world.evidence(1).await, Evidence::Absent);
}

#[tokio::test]
async fn what_is_valid_is_present_for_ever_where_something_may_have_been_missed() {
    let world = World::new();
    world.send_into(Fault::DroppedValid, 1).await;
    let mut events = world.listen().await;
    catch_up(&mut events);
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Present);
}

#[tokio::test]
async fn what_was_applied_unseen_and_sent_again_does_not_pass_for_dropped() {
    let world = World::with(|ledger| ledger.sent_twice(SentTwice::StuckValid), []);
    world.send(1).await;
    world.restart().await;
    let mut events = world.listen().await;
    // The replay would prove it; so it is not listened to.
    world.send_again(1, 2).await;
    assert_eq!(world.status(1).await, LedgerStatus::Valid);
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Present);
    assert_eq!(next(&mut events).await, transaction_id(1));
    assert_eq!(world.evidence(1).await, Evidence::Committed);
}

#[tokio::test]
async fn every_node_is_asked_and_one_that_is_silent_keeps_absence_from_being_proved() {
    let world = World::with(|ledger| ledger, [nobody()]);
    let mut events = world.listen().await;
    world.send_into(Fault::ResetBefore, 1).await;
    world.send_into(Fault::DroppedValid, 2).await;
    catch_up(&mut events);
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Inconclusive);
    assert_eq!(world.evidence_after(2, HOUR).await, Evidence::Present);
}

#[tokio::test]
async fn only_what_every_node_said_all_the_while_counts() {
    let words = Mutex::new(["", "Unknown", "Pending", "Unknown", "Unknown"].into_iter());
    let other = Node::start(move |_| {
        let word = words.lock().unwrap().next().unwrap();
        let status = json!({ "id": id(1), "status": { "statusType": word, "message": [] } });
        Conduct::HttpResponse(answer(200, &json!([status]).to_string()))
    })
    .await;
    let world = World::with(|ledger| ledger, [other.url]);
    let mut events = world.listen().await;
    world.send_into(Fault::ResetBefore, 1).await;
    catch_up(&mut events);
    for expected in [
        Evidence::Inconclusive,
        Evidence::Inconclusive,
        Evidence::Present,
        Evidence::Inconclusive,
        Evidence::Absent,
    ] {
        assert_eq!(world.evidence(1).await, expected);
        world.pass(60);
    }
}

#[tokio::test]
async fn what_any_node_says_counts() {
    let other = World::new();
    let world = World::with(|ledger| ledger, [other.ledger.url()]);
    other.send(1).await;
    other.send_into(Fault::Invalid, 2).await;
    other.send_into(Fault::DroppedValid, 3).await;
    assert_eq!(world.evidence(1).await, Evidence::Committed);
    assert_eq!(world.evidence(2).await, Evidence::Inconclusive);
    assert_eq!(world.evidence(3).await, Evidence::Present);
}

#[tokio::test]
async fn an_invalid_batch_does_not_pass_for_absent() {
    let world = World::new();
    let mut events = world.listen().await;
    world.send_into(Fault::Invalid, 1).await;
    catch_up(&mut events);
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn a_batch_without_transactions_is_never_absent() {
    let world = World::new();
    let mut events = world.listen().await;
    world.send_into(Fault::ResetBefore, 1).await;
    catch_up(&mut events);
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Absent);
    let reader = world.scabbard.evidence_reader();
    let empty =
        reader.find_evidence(&UnresolvedBatch { transaction_ids: vec![], ..world.doubt(1) }).await;
    assert_eq!(empty, Ok(Evidence::Inconclusive));
}

#[tokio::test]
async fn a_service_of_another_kind_of_ledger_is_an_error() {
    let world = World::new();
    let doubt = UnresolvedBatch { service_id: "global".parse().unwrap(), ..world.doubt(1) };
    assert!(world.scabbard.evidence_reader().find_evidence(&doubt).await.is_err());
}

#[tokio::test]
async fn an_attempt_that_another_made_is_never_absent() {
    let world = World::new();
    let mut events = world.listen().await;
    world.send_into(Fault::ResetBefore, 1).await;
    catch_up(&mut events);
    assert_eq!(world.evidence_after(1, HOUR).await, Evidence::Absent);
    let reader = world.scabbard.evidence_reader();
    let second =
        UnresolvedBatch { attempt_id: AttemptId { attempt: 2, epoch: 2 }, ..world.doubt(1) };
    assert_eq!(reader.find_evidence(&second).await, Ok(Evidence::Inconclusive));
}

#[tokio::test]
async fn statuses_that_cannot_be_used_prove_nothing() {
    let world = World::new();
    let mut events = world.listen().await;
    world.send_into(Fault::ResetBefore, 1).await;
    catch_up(&mut events);
    world.evidence_after(1, 59).await;
    for fault in [Fault::StatusesFail, Fault::StatusesTruncated, Fault::StatusesOfOthers] {
        world.pass(60);
        world.ledger.inject(fault, When::Next(1));
        assert_eq!(world.evidence(1).await, Evidence::Inconclusive, "{fault:?}");
    }
    assert_eq!(world.evidence(1).await, Evidence::Absent);
}
