use std::{
    pin::pin,
    sync::{Arc, Mutex},
};

use futures_util::{FutureExt, future::join};
use grid_batch_core::BatchError;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::{Evidence, UnresolvedBatch};
use grid_batch_core::ledger::{AttemptId, Ledger, Outcome};
use grid_batch_ledger_sim::{Fault, SentTwice, When};
use serde_json::json;
use tokio::sync::Notify;

use crate::{
    batches::{SERVICE, id, transaction_id},
    node::{Node, Reaction, response},
    nodes::unused_address,
    test_ledger::{TestLedger, catch_up, next, wait_until_broken},
};

const HOUR: u64 = 3_600;
/// How long a request without an answer may still arrive.
const LIMIT: u64 = 330;

#[tokio::test]
async fn committed_status_is_evidence_and_is_remembered() {
    let ledger = TestLedger::new();
    ledger.send(1).await;
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
    ledger.restart().await;
    assert_eq!(ledger.status(1).await, LedgerStatus::NotReported);
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
}

#[tokio::test]
async fn event_is_evidence_even_if_the_node_forgets_the_batch() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    assert_eq!(ledger.send_with_fault(Fault::ResetAfter, 1).await, Outcome::Ambiguous);
    assert_eq!(next(&mut events).await, transaction_id(1));
    ledger.restart().await;
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
}

#[tokio::test]
async fn replayed_event_after_a_restart_is_evidence() {
    let ledger = TestLedger::new();
    ledger.send(1).await;
    ledger.restart().await;
    assert_eq!(ledger.evidence(1).await, Evidence::Inconclusive);
    let mut events = ledger.subscribe().await;
    assert_eq!(next(&mut events).await, transaction_id(1));
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
}

#[tokio::test]
async fn unknown_after_a_restart_is_inconclusive() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.sim.inject(Fault::EventsBroken, When::Next(1));
    ledger.send(1).await;
    ledger.restart().await;
    wait_until_broken(&mut events).await;
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn batch_is_absent_if_nothing_was_missed_for_long_enough() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    assert_eq!(ledger.send_with_fault(Fault::ResetBefore, 1).await, Outcome::Ambiguous);
    catch_up(&mut events);
    assert_eq!(ledger.evidence(1).await, Evidence::Inconclusive);
    ledger.advance(LIMIT - 1);
    assert_eq!(ledger.evidence(1).await, Evidence::Inconclusive);
    ledger.advance(1);
    assert_eq!(ledger.evidence(1).await, Evidence::Absent);

    assert_eq!(ledger.send_again(1, 2).await, Outcome::Accepted);
    assert_eq!(next(&mut events).await, transaction_id(1));
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
    assert_eq!(ledger.applied_count(), 1);
}

#[tokio::test]
async fn unknown_without_a_subscription_is_inconclusive() {
    let ledger = TestLedger::new();
    ledger.send_with_fault(Fault::ResetBefore, 1).await;
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn subscription_after_the_post_cannot_prove_absence() {
    let ledger = TestLedger::new();
    ledger.send_with_fault(Fault::ResetBefore, 1).await;
    let mut events = ledger.subscribe().await;
    catch_up(&mut events);
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn subscription_after_a_break_cannot_prove_absence() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_with_fault(Fault::ResetBefore, 1).await;
    ledger.send_with_fault(Fault::EventsBroken, 2).await;
    wait_until_broken(&mut events).await;
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Inconclusive);
    let mut events = ledger.subscribe().await;
    catch_up(&mut events);
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn dropped_subscription_cannot_prove_absence() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_with_fault(Fault::ResetBefore, 1).await;
    catch_up(&mut events);
    drop(events);
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn absence_requires_that_all_events_were_processed() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_with_fault(Fault::ResetBefore, 1).await;
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Inconclusive);
    catch_up(&mut events);
    assert_eq!(ledger.evidence(1).await, Evidence::Absent);
    ledger.send(2).await;
    assert_eq!(next(&mut events).await, transaction_id(2));
    assert_eq!(ledger.evidence(1).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn later_attempt_is_observed_if_earlier_ones_failed() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.sim.inject(Fault::ResetBefore, When::Next(2));
    assert_eq!(ledger.send_again(1, 2).await, Outcome::Ambiguous);
    assert_eq!(ledger.send_again(2, 1).await, Outcome::Ambiguous);
    for (attempt, fault) in [(1, Fault::Busy), (2, Fault::Unauthorized), (3, Fault::ResetBefore)] {
        ledger.sim.inject(fault, When::Next(1));
        ledger.send_again(3, attempt).await;
    }
    catch_up(&mut events);
    for number in [1, 2, 3] {
        ledger.evidence(number).await;
    }
    ledger.advance(LIMIT);
    assert_eq!(ledger.evidence(1).await, Evidence::Inconclusive);
    assert_eq!(ledger.evidence(2).await, Evidence::Absent);
    assert_eq!(ledger.evidence(3).await, Evidence::Absent);
}

/// The queue gives a batch back unsent if the store took too long to hand it out.
#[tokio::test]
async fn attempts_that_were_given_back_prevent_no_proof() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.sim.inject(Fault::ResetBefore, When::Next(1));
    assert_eq!(ledger.send_again(1, 3).await, Outcome::Ambiguous);
    catch_up(&mut events);
    let unresolved = ledger.unresolved(1);
    let two = UnresolvedBatch { not_accepted: 2, ..unresolved.clone() };
    let one = UnresolvedBatch { not_accepted: 1, ..unresolved };
    let restored = UnresolvedBatch { earlier_may_arrive: true, ..two.clone() };
    let evidence = async |batch| ledger.scabbard.find_evidence(batch).await.unwrap().evidence;
    evidence(&two).await;
    ledger.advance(LIMIT);
    for (batch, expected) in [
        (&one, Evidence::Inconclusive),
        (&restored, Evidence::Inconclusive),
        (&two, Evidence::Absent),
        // What is proved about the attempt does not depend on the earlier ones.
        (&one, Evidence::Absent),
    ] {
        assert_eq!(evidence(batch).await, expected, "{batch:?}");
    }
}

#[tokio::test]
async fn attempt_without_a_post_is_absent_at_once() {
    let ledger = TestLedger::new();
    ledger.end_before_the_post(1, 1).await;
    assert_eq!(ledger.evidence(1).await, Evidence::Absent);
    {
        let mut sending = pin!(ledger.send_again(1, 2));
        assert_eq!(sending.as_mut().now_or_never(), None);
        assert_ne!(ledger.evidence(1).await, Evidence::Absent, "the attempt has not ended");
    }
    assert_eq!(ledger.evidence(1).await, Evidence::Absent);
    assert_eq!(ledger.send_again(1, 3).await, Outcome::Accepted);
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
    assert_eq!(ledger.times_received(1), 1);
}

#[tokio::test]
async fn attempt_without_a_post_proves_nothing_about_others() {
    let ledger = TestLedger::new();
    ledger.end_before_the_post(1, 1).await;
    let restored = UnresolvedBatch { earlier_may_arrive: true, ..ledger.unresolved(1) };
    let report = ledger.scabbard.find_evidence(&restored).await.unwrap();
    assert_eq!(report.evidence, Evidence::Inconclusive, "the database may have lost an attempt");

    ledger.end_before_the_post(2, 2).await;
    assert_eq!(ledger.evidence(2).await, Evidence::Inconclusive, "another process made attempt 1");

    ledger.end_before_the_post(3, 1).await;
    ledger.send_past_the_adapter(3).await;
    assert_eq!(ledger.evidence(3).await, Evidence::Committed);
}

#[tokio::test]
async fn pending_batch_is_present() {
    let ledger =
        TestLedger::with(|ledger| ledger.pending_for(std::time::Duration::from_secs(1)), []);
    ledger.send(1).await;
    assert_eq!(ledger.evidence(1).await, Evidence::Present);
}

#[tokio::test]
async fn dropped_batch_is_lost_and_committed_when_sent_again() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    assert_eq!(ledger.send_with_fault(Fault::DroppedValid, 1).await, Outcome::Accepted);
    catch_up(&mut events);
    assert_eq!(ledger.status(1).await, LedgerStatus::Valid);
    ledger.advance(LIMIT - 1);
    assert_eq!(ledger.evidence(1).await, Evidence::Present);
    ledger.advance(1);
    assert_eq!(ledger.evidence(1).await, Evidence::Lost);

    ledger.send_again(1, 2).await;
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
    assert_eq!(ledger.applied_count(), 1);
}

#[tokio::test]
async fn sending_again_restarts_the_time() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.sim.inject(Fault::DroppedValid, When::Always);
    ledger.send(1).await;
    catch_up(&mut events);
    assert_eq!(ledger.evidence_after(1, LIMIT).await, Evidence::Lost);
    ledger.send_again(1, 2).await;
    assert_eq!(ledger.status(1).await, LedgerStatus::Valid);
    assert_eq!(ledger.evidence_after(1, LIMIT - 1).await, Evidence::Present);
    ledger.advance(1);
    assert_eq!(ledger.evidence(1).await, Evidence::Lost);
}

#[tokio::test]
async fn valid_batch_is_lost_even_if_events_were_missed() {
    let ledger = TestLedger::new();
    ledger.send_with_fault(Fault::DroppedValid, 1).await;
    assert_eq!(ledger.evidence_after(1, LIMIT - 1).await, Evidence::Present);
    ledger.advance(1);
    assert_eq!(ledger.evidence(1).await, Evidence::Lost);
    ledger.send_again(1, 2).await;
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
    assert_eq!(ledger.applied_count(), 1);
}

#[tokio::test]
async fn valid_batch_of_several_attempts_stays_present() {
    let ledger = TestLedger::new();
    ledger.send_with_fault(Fault::ResetBefore, 1).await;
    ledger.sim.inject(Fault::DroppedValid, When::Next(1));
    ledger.send_again(1, 2).await;
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Present);
}

#[tokio::test]
async fn unobserved_commit_that_is_sent_again_is_not_dropped() {
    let ledger = TestLedger::with(|ledger| ledger.sent_twice(SentTwice::StuckValid), []);
    ledger.send(1).await;
    ledger.restart().await;
    let mut events = ledger.subscribe().await;
    // The events of the replay are not processed yet, because they would be evidence.
    ledger.send_again(1, 2).await;
    assert_eq!(ledger.status(1).await, LedgerStatus::Valid);
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Present);
    assert_eq!(next(&mut events).await, transaction_id(1));
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
}

#[tokio::test]
async fn unreachable_node_prevents_absence() {
    let ledger = TestLedger::with(|ledger| ledger, [unused_address()]);
    let mut events = ledger.subscribe().await;
    ledger.send_with_fault(Fault::ResetBefore, 1).await;
    ledger.send_with_fault(Fault::DroppedValid, 2).await;
    catch_up(&mut events);
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Inconclusive);
    assert_eq!(ledger.evidence_after(2, HOUR).await, Evidence::Present);
}

#[tokio::test]
async fn absence_requires_unknown_at_all_nodes_all_the_time() {
    let words = Mutex::new(["Unknown", "", "Unknown", "Pending", "Unknown", "Unknown"].into_iter());
    let other = Node::start(move |request| {
        if request.line().ends_with("/state_root") {
            return Reaction::Respond(response(404, ""));
        }
        let word = words.lock().unwrap().next().unwrap();
        let status = json!({ "id": id(1), "status": { "statusType": word, "message": [] } });
        Reaction::Respond(response(200, &json!([status]).to_string()))
    })
    .await;
    let ledger = TestLedger::with(|ledger| ledger, [other.url]);
    let mut events = ledger.subscribe().await;
    // The nodes are first asked before the POST.
    ledger.send_with_fault(Fault::ResetBefore, 1).await;
    catch_up(&mut events);
    for expected in [
        Evidence::Inconclusive,
        Evidence::Inconclusive,
        Evidence::Present,
        Evidence::Inconclusive,
        // The request has arrived, because a node reported the batch.
        Evidence::Lost,
    ] {
        assert_eq!(ledger.evidence(1).await, expected);
        ledger.advance(LIMIT);
    }
}

#[tokio::test]
async fn report_of_any_node_is_evidence() {
    let other = TestLedger::new();
    let ledger = TestLedger::with(|ledger| ledger, [other.sim.url()]);
    other.send(1).await;
    other.send_with_fault(Fault::Invalid, 2).await;
    other.send_with_fault(Fault::DroppedValid, 3).await;
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
    assert_eq!(ledger.evidence(2).await, Evidence::Inconclusive);
    assert_eq!(ledger.evidence(3).await, Evidence::Present);
}

#[tokio::test]
async fn invalid_batch_is_not_absent() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_with_fault(Fault::Invalid, 1).await;
    catch_up(&mut events);
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn batch_without_transactions_is_never_absent() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_with_fault(Fault::ResetBefore, 1).await;
    catch_up(&mut events);
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Absent);
    let reader = &ledger.scabbard;
    let empty = reader
        .find_evidence(&UnresolvedBatch { transaction_ids: vec![], ..ledger.unresolved(1) })
        .await;
    assert_eq!(empty.unwrap().evidence, Evidence::Inconclusive);
}

#[tokio::test]
async fn service_of_another_kind_of_ledger_is_an_error() {
    let ledger = TestLedger::new();
    let unresolved =
        UnresolvedBatch { service_id: "global".parse().unwrap(), ..ledger.unresolved(1) };
    assert!(ledger.scabbard.find_evidence(&unresolved).await.is_err());
}

#[tokio::test]
async fn attempt_of_another_process_is_never_absent() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_with_fault(Fault::ResetBefore, 1).await;
    catch_up(&mut events);
    assert_eq!(ledger.evidence_after(1, HOUR).await, Evidence::Absent);
    let reader = &ledger.scabbard;
    let second =
        UnresolvedBatch { attempt_id: AttemptId { attempt: 2, epoch: 2 }, ..ledger.unresolved(1) };
    assert_eq!(reader.find_evidence(&second).await.unwrap().evidence, Evidence::Inconclusive);
}

#[tokio::test]
async fn invalid_statuses_are_no_evidence() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_with_fault(Fault::ResetBefore, 1).await;
    catch_up(&mut events);
    ledger.evidence_after(1, LIMIT - 1).await;
    for (fault, is_outage) in [
        (Fault::StatusesFail, true),
        (Fault::StatusesTruncated, false),
        (Fault::StatusesOfOthers, false),
    ] {
        ledger.advance(60);
        ledger.sim.inject(fault, When::Next(1));
        let error = ledger.try_report(1).await.unwrap_err();
        assert_eq!(matches!(error, BatchError::Unavailable(_)), is_outage, "{fault:?}: {error}");
    }
    assert_eq!(ledger.evidence(1).await, Evidence::Absent);
}

#[tokio::test]
async fn events_prove_a_batch_only_if_they_name_all_of_it() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_with_fault(Fault::ResetBefore, 9).await;
    for number in [1, 2] {
        ledger.send(number).await;
        next(&mut events).await;
    }
    catch_up(&mut events);
    ledger.evidence_with_transactions(9, &[1, 2, 3]).await;
    ledger.advance(HOUR);
    let evidence = ledger.evidence_with_transactions(9, &[1, 2, 3]).await;
    assert_eq!(evidence, Evidence::Inconclusive, "a part of it was applied: it is not absent");
    ledger.send(3).await;
    next(&mut events).await;
    assert_eq!(ledger.evidence_with_transactions(9, &[1, 2, 3]).await, Evidence::Committed);
}

#[tokio::test]
async fn shared_transaction_proves_no_batch_alone() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_with_fault(Fault::ResetBefore, 9).await;
    ledger.send(1).await;
    next(&mut events).await;
    let [shared, own] = [1, 2].map(|number| transaction_id(number).parse().unwrap());
    let reader = &ledger.scabbard;
    let evidence = async |transaction_ids| {
        let shared_transaction_ids = vec![shared];
        let batch =
            UnresolvedBatch { transaction_ids, shared_transaction_ids, ..ledger.unresolved(9) };
        reader.find_evidence(&batch).await.unwrap().evidence
    };
    assert_eq!(evidence(vec![shared]).await, Evidence::Inconclusive);
    assert_eq!(evidence(vec![shared, own]).await, Evidence::Inconclusive);
    ledger.send(2).await;
    next(&mut events).await;
    assert_eq!(evidence(vec![shared]).await, Evidence::Inconclusive);
    assert_eq!(evidence(vec![shared, own]).await, Evidence::Committed);
}

#[tokio::test]
async fn event_before_the_first_post_proves_nothing() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send(1).await;
    next(&mut events).await;
    ledger.send_with_fault(Fault::ResetBefore, 9).await;
    assert_eq!(ledger.evidence_with_transactions(9, &[1]).await, Evidence::Inconclusive);
    let attempt_id = AttemptId { attempt: 2, epoch: 2 };
    let transaction_ids = vec![transaction_id(1).parse().unwrap()];
    let elsewhere = UnresolvedBatch { attempt_id, transaction_ids, ..ledger.unresolved(9) };
    let report = ledger.scabbard.find_evidence(&elsewhere).await.unwrap();
    assert_eq!(report.evidence, Evidence::Committed, "another process may have sent it before");
}

#[tokio::test]
async fn status_of_a_batch_proves_no_other_batch() {
    let ledger = TestLedger::new();
    ledger.send_with_fault(Fault::ResetBefore, 9).await;
    ledger.send(1).await;
    assert_eq!(ledger.status(1).await, LedgerStatus::Committed);
    assert_eq!(ledger.evidence_with_transactions(9, &[1]).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn event_during_the_queries_is_evidence() {
    let released = Arc::new(Notify::new());
    let asked = Arc::new(Notify::new());
    let other = Node::start({
        let (released, asked) = (Arc::clone(&released), Arc::clone(&asked));
        move |_| {
            asked.notify_one();
            let unknown =
                json!([{ "id": id(1), "status": { "statusType": "Unknown", "message": [] } }]);
            Reaction::RespondWhen(response(200, &unknown.to_string()), Arc::clone(&released))
        }
    })
    .await;
    let ledger = TestLedger::with(|ledger| ledger, [other.url]);
    let mut events = ledger.subscribe().await;
    released.notify_one();
    ledger.send_with_fault(Fault::ResetAfter, 1).await;
    asked.notified().await;
    ledger.sim.inject(Fault::StatusesFail, When::Always);
    let event = async {
        asked.notified().await;
        assert_eq!(next(&mut events).await, transaction_id(1));
        released.notify_one();
    };
    let (evidence, ()) = join(ledger.evidence(1), event).await;
    assert_eq!(evidence, Evidence::Committed);
}

#[tokio::test]
async fn jump_of_the_time_of_day_proves_no_absence() {
    for back in [false, true] {
        let ledger = TestLedger::new();
        let mut events = ledger.subscribe().await;
        ledger.send_with_fault(Fault::ResetBefore, 1).await;
        ledger.send_with_fault(Fault::DroppedValid, 2).await;
        catch_up(&mut events);
        let jump = || ledger.jump(if back { -3_600 } else { 3_600 });
        let evidence = async || [ledger.evidence(1).await, ledger.evidence(2).await];
        for seconds in [0, 300, 29] {
            ledger.advance(seconds);
            assert_eq!(evidence().await, [Evidence::Inconclusive, Evidence::Present]);
            jump();
        }
        ledger.advance(1);
        assert_eq!(evidence().await, [Evidence::Absent, Evidence::Lost], "back: {back}");
    }
}

#[tokio::test]
async fn absence_is_foreseen_while_a_request_may_arrive() {
    let ledger = TestLedger::new();
    let mut events = ledger.subscribe().await;
    ledger.send_with_fault(Fault::ResetBefore, 1).await;
    catch_up(&mut events);
    ledger.evidence(1).await;
    ledger.advance(100);
    let report = ledger.report(1).await;
    assert_eq!(report.provable_in.map(|wait| wait.as_secs()), Some(LIMIT - 100));
    assert!(report.detail.unwrap().contains("may still arrive for 231 s"));
    drop(events);
    assert_eq!(ledger.report(1).await.provable_in, None, "nothing proves it");
}

#[tokio::test]
async fn evidence_is_needed_for_a_batch_that_stays_valid() {
    let ledger = TestLedger::new();
    ledger.send_with_fault(Fault::DroppedValid, 1).await;
    let is_needed = || ledger.scabbard.needs_evidence(SERVICE, &id(1));
    assert!(!is_needed());
    assert_eq!(ledger.status(1).await, LedgerStatus::Valid);
    assert!(!is_needed(), "most batches are committed soon");
    ledger.advance(1);
    assert!(is_needed());
}
