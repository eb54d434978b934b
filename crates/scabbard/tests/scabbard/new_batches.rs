//! Proofs that a batch is new, and the handling of batches without a proof.

use std::{sync::Arc, time::Duration};

use grid_batch_core::PeerService;
use grid_batch_core::ledger::{AttemptId, Ledger, LedgerEventStream, Outcome, SubmissionAnswer};
use grid_batch_ledger_sim::{Fault, LedgerSim, RequestKind};
use grid_batch_scabbard::{NewBatchRules, UnknownHistory};
use tokio::time::sleep;

use crate::{
    batches::{SERVICE, id, scope, submission, transaction_id},
    memory_history::MemoryHistory,
    test_ledger::{TestLedger, catch_up, next, read_in_background, wait_until_broken},
};

/// More transactions than a node replays.
const MANY: u32 = 70;

async fn send(ledger: &TestLedger, number: u32, attempt: u32) -> SubmissionAnswer {
    let sender = &ledger.scabbard;
    let attempt_id = AttemptId { attempt, epoch: 1 };
    let submission = submission(number, 1).with_attempt_id(attempt_id);
    sender.send(&ledger.sim.url(), &submission).await
}

/// The outcome after the longest wait for the replay.
async fn outcome(ledger: &TestLedger, number: u32) -> Outcome {
    let answer = send(ledger, number, 1).await;
    if answer.outcome != Outcome::Busy {
        return answer.outcome;
    }
    ledger.advance(10);
    send(ledger, number, 2).await.outcome
}

/// A service with this many transactions of other clients, and an adapter with this history.
async fn with_commits(count: u32, history: &Arc<MemoryHistory>) -> TestLedger {
    let ledger = TestLedger::new().with_service_history(history);
    for number in 0..count {
        ledger.send_past_the_adapter(number).await;
    }
    ledger
}

async fn subscribe(ledger: &TestLedger) {
    read_in_background(ledger.subscribe().await);
}

#[tokio::test]
async fn whole_replay_makes_the_history_known() {
    let history = MemoryHistory::new(None);
    let ledger = with_commits(3, &history).await;
    subscribe(&ledger).await;
    assert_eq!(outcome(&ledger, 200).await, Outcome::Accepted);
    assert_eq!(history.is_known(), Some(true));
    for number in 0..3 {
        assert!(history.has_applied(&transaction_id(number)), "{number}: of another client");
    }
    let reads = history.reads();
    assert_eq!(ledger.send(201).await, Outcome::Accepted);
    assert_eq!(history.reads(), reads, "live events show everything");
    assert!(!history.has_applied(&transaction_id(200)), "it is in the store");
}

#[tokio::test]
async fn batch_that_waited_for_the_replay_is_not_asked_about_again() {
    let history = MemoryHistory::new(None);
    let ledger = with_commits(3, &history).await;
    let unread = ledger.scabbard.events(SERVICE).await.unwrap();
    assert_eq!(send(&ledger, 200, 1).await.outcome, Outcome::Busy);
    read_in_background(unread);
    ledger.advance(1);
    assert_eq!(send(&ledger, 200, 2).await.outcome, Outcome::Accepted);
    assert_eq!(ledger.questions(200), 1);
    // A node may have accepted an attempt whose answer says otherwise.
    ledger.send_with_fault(Fault::Busy, 201).await;
    assert_eq!(send(&ledger, 201, 2).await.outcome, Outcome::Accepted);
    assert_eq!(ledger.questions(201), 2);
}

#[tokio::test]
async fn node_is_asked_to_replay_where_events_are_not_subscribed_to() {
    for (count, expected) in [(3, Outcome::Accepted), (MANY, Outcome::NotProvedNew)] {
        let history = MemoryHistory::new(None);
        let ledger = with_commits(count, &history).await;
        assert_eq!(outcome(&ledger, 200).await, expected);
        assert_eq!(history.is_known(), Some(expected == Outcome::Accepted));
        assert!(history.has_applied(&transaction_id(0)));
    }
}

#[tokio::test]
async fn answer_ahead_is_used_before_the_history_is_known() {
    for (count, expected) in [(3, Outcome::Accepted), (MANY, Outcome::NotProvedNew)] {
        let history = MemoryHistory::new(None);
        let ledger = with_commits(count, &history).await;
        subscribe(&ledger).await;
        let batch_id = id(200).parse().unwrap();
        ledger.scabbard.ask_ahead(&SERVICE.parse().unwrap(), &[batch_id]).await;
        ledger.scabbard.ask_ahead(&SERVICE.parse().unwrap(), &[batch_id]).await;
        assert_eq!(send(&ledger, 200, 1).await.outcome, expected, "{count}");
        assert_eq!(ledger.questions(200), 1, "{count}");
    }
}

/// The subscription ends before, during or after its check, as when the server stops or the node restarts.
#[tokio::test]
async fn subscription_that_ends_while_it_is_checked_proves_nothing() {
    for milliseconds in [0, 1, 10, 50] {
        let history = MemoryHistory::new(None);
        let ledger = with_commits(3, &history).await;
        // The subscription is not read, so its check takes long.
        let unread = ledger.subscribe().await;
        let end_during_the_check = async {
            while history.reads() == 0 {
                sleep(Duration::from_millis(1)).await;
            }
            sleep(Duration::from_millis(milliseconds)).await;
            drop(unread);
        };
        let (answer, ()) = tokio::join!(send(&ledger, 200, 1), end_during_the_check);
        assert_ne!(answer.outcome, Outcome::NotProvedNew, "{milliseconds}");
        assert_ne!(history.is_known(), Some(false), "{milliseconds}");
    }
}

#[tokio::test]
async fn batch_of_an_unknown_history_is_sent_only_if_declared_new() {
    let history = MemoryHistory::new(None);
    let ledger = with_commits(MANY, &history).await;
    subscribe(&ledger).await;
    assert_eq!(outcome(&ledger, 200).await, Outcome::NotProvedNew);
    assert_eq!(history.is_known(), Some(false));
    assert_eq!(ledger.times_received(200), 0);
    history.set_new(true);
    assert_eq!(send(&ledger, 200, 3).await.outcome, Outcome::Accepted);
    history.set_new(false);
    assert_eq!(outcome(&ledger, 201).await, Outcome::NotProvedNew, "it is about one batch");
}

#[tokio::test]
async fn anchor_that_a_node_remembers_proves_that_nothing_was_missed() {
    for is_remembered in [true, false] {
        let history = MemoryHistory::new(Some(true));
        history.set_anchor(0);
        let ledger = with_commits(if is_remembered { MANY } else { 101 }, &history).await;
        subscribe(&ledger).await;
        let expected = if is_remembered { Outcome::Accepted } else { Outcome::NotProvedNew };
        assert_eq!(outcome(&ledger, 200).await, expected);
        assert_eq!(history.is_known(), Some(is_remembered));
    }
}

#[tokio::test]
async fn anchor_is_asked_for_once_in_the_question_about_the_batch() {
    let history = MemoryHistory::new(Some(true));
    history.set_anchor(0);
    let ledger = with_commits(MANY, &history).await;
    subscribe(&ledger).await;
    let questions = |about: u32| {
        let id = id(about).parse().unwrap();
        let requests = ledger.sim.requests();
        let requests = requests.iter().filter(|it| it.kind == RequestKind::Statuses);
        requests.filter(|it| it.batch_ids.contains(&id)).count()
    };
    let before = questions(0);
    for number in [200, 201] {
        assert_eq!(ledger.send(number).await, Outcome::Accepted);
        assert_eq!(questions(number), 1);
    }
    assert_eq!(questions(0) - before, 1);
    assert_eq!(history.reads(), 1);
}

#[tokio::test]
async fn anchor_proves_also_without_events() {
    let history = MemoryHistory::new(Some(true));
    history.set_anchor(0);
    let ledger = with_commits(MANY, &history).await;
    for number in [200, 201] {
        assert_eq!(ledger.send(number).await, Outcome::Accepted);
    }
}

#[tokio::test]
async fn new_start_holds_nothing_while_the_node_remembers_the_anchor() {
    let history = MemoryHistory::new(None);
    let ledger = with_commits(0, &history).await;
    subscribe(&ledger).await;
    for number in 0..MANY {
        assert_eq!(ledger.send(number).await, Outcome::Accepted);
    }
    history.set_anchor(MANY - 2);
    let ledger = ledger.with_new_adapter(&history);
    subscribe(&ledger).await;
    assert_eq!(outcome(&ledger, 200).await, Outcome::Accepted);
}

async fn subscribe_and_send(ledger: &TestLedger, number: u32) -> LedgerEventStream {
    let mut events = ledger.subscribe().await;
    catch_up(&mut events);
    assert_eq!(ledger.send(number).await, Outcome::Accepted);
    events
}

#[tokio::test]
async fn restart_of_the_node_under_a_live_subscription_leaves_no_gap() {
    let history = MemoryHistory::new(Some(true));
    history.set_anchor(0);
    let ledger = with_commits(MANY, &history).await;
    let mut events = subscribe_and_send(&ledger, 200).await;
    ledger.sim.restart();
    wait_until_broken(&mut events).await;
    while ledger.statuses([0]).await.is_err() {}
    subscribe(&ledger).await;
    assert_eq!(outcome(&ledger, 201).await, Outcome::Accepted);
}

#[tokio::test]
async fn restart_of_the_node_without_a_subscription_is_a_gap() {
    let history = MemoryHistory::new(Some(true));
    history.set_anchor(0);
    let ledger = with_commits(MANY, &history).await;
    drop(subscribe_and_send(&ledger, 200).await);
    ledger.restart().await;
    subscribe(&ledger).await;
    assert_eq!(outcome(&ledger, 201).await, Outcome::NotProvedNew);
    assert_eq!(history.is_known(), Some(false));
}

#[tokio::test]
async fn restored_store_needs_a_new_proof() {
    let history = MemoryHistory::new(Some(true));
    history.set_anchor(0);
    let ledger = with_commits(MANY, &history).await;
    let _events = subscribe_and_send(&ledger, 200).await;
    history.restore();
    assert_eq!(outcome(&ledger, 201).await, Outcome::NotProvedNew);
}

#[tokio::test]
async fn transaction_of_another_client_is_stored_at_its_event() {
    let history = MemoryHistory::new(Some(true));
    let ledger = with_commits(0, &history).await;
    let mut events = ledger.subscribe().await;
    ledger.send_past_the_adapter(1).await;
    assert_eq!(next(&mut events).await, transaction_id(1));
    for _ in 0..1_000 {
        if history.has_applied(&transaction_id(1)) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("not stored");
}

/// Only the node has restarted, and no events were received meanwhile.
#[tokio::test]
async fn peer_that_remembers_the_anchor_proves_it() {
    for knows_peer in [true, false] {
        let history = MemoryHistory::new(Some(true));
        history.set_anchor(0);
        let mut peer = None;
        let ledger = TestLedger::with_peers(
            |ledger| ledger,
            [],
            |node, clock| {
                let joined = LedgerSim::scabbard([scope()]).clock(clock).seed(2);
                let joined = joined.join_circuit_of(node, [(scope(), scope())]).start().unwrap();
                let at_peer = PeerService { service: scope(), peer: scope(), url: joined.url() };
                peer = Some(joined);
                if knows_peer { vec![at_peer] } else { Vec::new() }
            },
        );
        let ledger = ledger.with_service_history(&history);
        for number in 0..MANY {
            ledger.send_past_the_adapter(number).await;
        }
        ledger.restart().await;
        let expected = if knows_peer { Outcome::Accepted } else { Outcome::NotProvedNew };
        assert_eq!(outcome(&ledger, 200).await, expected);
    }
}

/// Rules by which the service is known, and batches of other services with unknown history are treated like this.
fn rules(others: UnknownHistory) -> NewBatchRules {
    let of = |pattern: &str, rule| (pattern.parse().unwrap(), rule);
    NewBatchRules::new([of(SERVICE, UnknownHistory::Send), of("*", others)])
}

#[tokio::test]
async fn history_of_a_configured_service_counts_as_known() {
    let history = MemoryHistory::new(Some(false));
    let ledger = with_commits(MANY, &history).await.with_new_adapter(&history);
    subscribe(&ledger).await;
    assert_eq!(outcome(&ledger, 200).await, Outcome::NotProvedNew);
    let ledger = TestLedger::new().with_rules(&history, rules(UnknownHistory::Hold));
    assert_eq!(ledger.send(200).await, Outcome::Accepted);
    assert_eq!(history.is_known(), Some(true));
}

#[tokio::test]
async fn batch_of_an_unknown_history_can_be_refused_at_intake() {
    let service = SERVICE.parse().unwrap();
    let other = "abcde-01234::gsZZ".parse().unwrap();
    let history = MemoryHistory::new(Some(false));
    let ledger = TestLedger::new().with_rules(&history, rules(UnknownHistory::Refuse));
    let check = &ledger.scabbard;
    assert_eq!(check.check_history(&service, false).await, Ok(()), "it is configured as known");
    let reason = check.check_history(&other, false).await.unwrap_err();
    assert!(reason.contains("abcde-01234::gsZZ has committed before"), "{reason}");
    assert_eq!(check.check_history(&other, true).await, Ok(()));
    history.restore();
    assert_eq!(check.check_history(&other, false).await, Ok(()), "the sender finds it out");
    let holds = TestLedger::new().with_service_history(&MemoryHistory::new(Some(false)));
    let check = &holds.scabbard;
    assert_eq!(check.check_history(&other, false).await, Ok(()));
}
