use std::collections::BTreeSet;

use super::*;
use crate::ItemId;
use crate::batches::{Deadline, Hold, Progress, Receipt};
use crate::claims::InstanceId;
use crate::ledger::{Outage, OutageKind};
use crate::queries::{InstanceLease, ServiceOwner};
use crate::queue::{Ahead, Scheduling};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn stored(number: u8, state: BatchState) -> StoredBatch {
    StoredBatch {
        progress: Progress::at(state),
        ..StoredBatch::new("a::b".parse().unwrap(), ItemId::from_bytes([number; 64]), at(1))
    }
}

fn details(batch: StoredBatch, ahead: Option<Ahead>) -> BatchDetails {
    BatchDetails {
        batch,
        label: None,
        of_withdrawal: false,
        deadline: None,
        ahead,
        transaction_ids: Vec::new(),
        failed_attempts: Vec::new(),
        receipts: Vec::new(),
        commit_after_invalid: None,
    }
}

fn held(number: u8, state: BatchState) -> StoredBatch {
    let hold = Hold { since: at(2), reason: "look first".to_owned(), until_decision: true };
    StoredBatch { held: Some(hold), ..stored(number, state) }
}

fn behind(head: StoredBatch, reason: WaitReason) -> Option<Ahead> {
    Some(Ahead { reason, head: Some(head), head_waits: false, count: 1, more: false })
}

/// The verbs, each with the number of its batch.
fn actions(details: &BatchDetails, facts: Option<ServiceFacts<'_>>) -> Vec<(&'static str, u8)> {
    let number = |batch: Option<&StoredBatch>| batch.map_or(0, |it| it.batch_id.as_bytes()[0]);
    let actions = BatchExplanation::new(details, facts).actions();
    actions.iter().map(|it| (it.verb.as_str(), number(it.batch()))).collect()
}

fn service(lease_ends_at: Option<i64>) -> ServiceOverview {
    let lease = |seconds| InstanceLease {
        instance_id: InstanceId::new("north-1"),
        name: None,
        lease_ends_at: at(seconds),
        full_lease_ends_at: at(seconds),
        ledger_confirmed: true,
        draining: false,
    };
    ServiceOverview {
        service_id: "a::b".parse().unwrap(),
        open: 2,
        under_way: 1,
        in_doubt: 0,
        oldest_at: Some(at(1)),
        held: 0,
        stopped_by_holds: false,
        failing: None,
        parked: None,
        halts: 0,
        halted_since: None,
        scheduling: Scheduling::SERIAL,
        owner: lease_ends_at.map(|end| ServiceOwner { instance: lease(end), epoch: 1 }),
    }
}

fn facts_of<'a>(
    service: &'a ServiceOverview,
    pause: Option<&'a ServicePause>,
    waits: &'a [WaitReason],
) -> ServiceFacts<'a> {
    ServiceFacts { service, pause, waits, search: None, now: at(10) }
}

fn outage() -> WaitReason {
    WaitReason::Node(Outage {
        node: "http://one:8080".to_owned(),
        kind: OutageKind::Unanswered,
        since: at(3),
        lasted: Duration::from_secs(7),
        reason: "refused".to_owned(),
    })
}

#[test]
fn nothing_is_guessed_while_a_node_does_not_answer() {
    let (owned, outages) = (service(Some(11)), [outage()]);
    let of = |batch: StoredBatch, ahead| {
        let details = details(batch, ahead);
        let facts = facts_of(&owned, None, &outages);
        (actions(&details, Some(facts)), BatchExplanation::new(&details, Some(facts)).to_string())
    };
    for state in [BatchState::InDoubt, BatchState::Pending, BatchState::Valid] {
        let (actions, text) = of(stored(1, state), None);
        assert_eq!(actions, []);
        let told = "The node http://one:8080 has not answered for 7 s. The batch waits for ";
        assert!(text.starts_with(told), "{text}");
    }
    assert_eq!(of(held(1, BatchState::InDoubt), None).0, [("release", 1)]);
    assert_eq!(of(stored(1, BatchState::Delayed), None).0, [("retry", 1), ("cancel", 1)]);
    let behind_valid = behind(stored(2, BatchState::Valid), WaitReason::Behind);
    assert_eq!(of(stored(1, BatchState::New), behind_valid).0, [("cancel", 1)]);
}

#[test]
fn search_for_evidence_is_explained_with_its_end() {
    let owned = service(Some(1_000));
    let limits = SearchLimits {
        quiet_after: Duration::from_secs(60),
        hold_after: Duration::from_secs(120),
        give_up_after: Duration::from_secs(3_600),
    };
    let text = |state, since, now| {
        let batch = StoredBatch { since: Some(at(since)), ..stored(1, state) };
        let waiting = details(stored(3, BatchState::New), behind(batch, WaitReason::Behind));
        let facts =
            ServiceFacts { search: Some(limits), now: at(now), ..facts_of(&owned, None, &[]) };
        BatchExplanation::new(&waiting, Some(facts)).to_string()
    };
    let in_doubt = " The server asks the ledger for evidence of attempt 0. Without any, the batch is held for an operator in \
         85 s.";
    assert!(text(BatchState::InDoubt, 5, 40).ends_with(in_doubt));
    let reported = " If the ledger no longer reports the batch, or has not ended it in 25 s, the server asks for \
                    evidence of attempt 0. Without any, the batch is held for an operator in 85 s.";
    assert!(text(BatchState::Valid, 5, 40).ends_with(reported));
    let late = " The server asks the ledger for evidence of attempt 0. Without any, the batch is held for an \
                operator soon; if the ledger has it and does not end it, in 56 min.";
    assert!(text(BatchState::Pending, 5, 200).ends_with(late));
    let delayed = text(BatchState::Delayed, 5, 40);
    assert!(delayed.ends_with("waits for its next try."), "{delayed}");
}

#[test]
fn each_state_allows_what_its_decisions_allow() {
    let of = |state| actions(&details(stored(1, state), None), None);
    assert_eq!(of(BatchState::New), [("cancel", 1)]);
    assert_eq!(of(BatchState::Submitting), []);
    assert_eq!(of(BatchState::Delayed), [("retry", 1), ("cancel", 1)]);
    assert_eq!(of(BatchState::Absent), [("cancel", 1)]);
    for state in [BatchState::InDoubt, BatchState::Pending, BatchState::Valid] {
        assert_eq!(of(state), [("resubmit", 1), ("end_committed", 1), ("end_invalid", 1)]);
    }
    for state in [BatchState::Invalid, BatchState::Committed] {
        assert_eq!(of(state), []);
    }
    let held_in_doubt = details(held(1, BatchState::InDoubt), None);
    assert_eq!(
        actions(&held_in_doubt, None),
        [("release", 1), ("resubmit", 1), ("end_committed", 1), ("end_invalid", 1)]
    );
}

#[test]
fn waiting_batch_offers_actions_on_its_blocker() {
    let waiting = details(
        stored(1, BatchState::New),
        behind(held(2, BatchState::Pending), WaitReason::Behind),
    );
    let expected =
        [("cancel", 1), ("release", 2), ("resubmit", 2), ("end_committed", 2), ("end_invalid", 2)];
    assert_eq!(actions(&waiting, None), expected);
    let halt = WaitReason::Halt { since: at(3) };
    let stopped = details(stored(1, BatchState::New), behind(stored(2, BatchState::Invalid), halt));
    assert_eq!(actions(&stopped, None), [("cancel", 1), ("continue", 2), ("end_following", 2)]);
}

#[test]
fn batch_of_a_withdrawal_is_decided_only_when_it_is_held() {
    let of_withdrawal = |batch| BatchDetails { of_withdrawal: true, ..details(batch, None) };
    assert_eq!(actions(&of_withdrawal(stored(1, BatchState::Pending)), None), []);
    assert_eq!(actions(&of_withdrawal(stored(1, BatchState::Delayed)), None), [("retry", 1)]);
    let held = of_withdrawal(held(1, BatchState::Pending));
    assert_eq!(
        actions(&held, None),
        [("release", 1), ("resubmit", 1), ("end_committed", 1), ("end_invalid", 1)]
    );
}

#[test]
fn text_has_the_wait_and_what_stops_the_service() {
    let pending = details(stored(1, BatchState::Pending), None);
    let pause = pause();
    let text = |service: &ServiceOverview, pause| {
        let facts = facts_of(service, pause, &[]);
        BatchExplanation::new(&pending, Some(facts)).to_string()
    };
    let wait = "The batch waits for the ledger's final status; a node has accepted it, and the ledger was not asked \
                about it yet.";
    assert_eq!(text(&service(Some(11)), None), wait);
    assert_eq!(
        text(&service(None), None),
        format!("{wait} No server works on its service: no running instance has claimed it.")
    );
    assert_eq!(
        text(&service(Some(10)), Some(&pause)),
        format!(
            "{wait} The instance north-1, which works on its service, has not renewed its lease in time; if it does \
             not come back, another one takes over. Its \
             service has been paused since 1970-01-01T00:00:04Z by local/ann: maintenance."
        )
    );
    let (paused, owned) = (Some(&pause), service(Some(11)));
    let facts = facts_of(&owned, paused, &[]);
    assert_eq!(actions(&pending, Some(facts)).last(), Some(&("resume", 0)));
}

#[test]
fn nothing_is_resubmitted_while_states_differ() {
    let held = details(held(1, BatchState::Valid), None);
    let pause = ServicePause {
        since: at(4),
        reason: ServicePause::DIFFERENT_STATES.to_owned(),
        operator: None,
        of_all: false,
        states_differ: true,
    };
    let owned = service(Some(11));
    let facts = facts_of(&owned, Some(&pause), &[]);
    let expected = [("release", 1), ("end_committed", 1), ("end_invalid", 1)];
    assert_eq!(actions(&held, Some(facts)), expected);
    assert_eq!(ServiceExplanation::new(facts, None).actions(), []);
    let text = ServiceExplanation::new(facts, Some(&held)).to_string();
    assert!(text.ends_with("no batch of this circuit can commit."), "{text}");
    let operator = Some("local/ann".to_owned());
    let both = ServicePause { operator, ..pause.clone() };
    let facts = ServiceFacts { pause: Some(&both), ..facts };
    assert_eq!(actions(&held, Some(facts)).last(), Some(&("resume", 0)));
}

#[test]
fn ended_batch_tells_its_end() {
    let text = |details: &BatchDetails| BatchExplanation::new(details, None).to_string();
    let committed = details(stored(1, BatchState::Committed), None);
    assert_eq!(text(&committed), "The batch has ended: the ledger has applied it.");
    let mut invalid = details(stored(1, BatchState::Invalid), None);
    assert_eq!(text(&invalid), "The batch has ended: it is invalid.");
    let (transaction_id, error_data) = (None, Vec::new());
    invalid.receipts =
        vec![Receipt { transaction_id, error_message: "not enough".to_owned(), error_data }];
    assert_eq!(text(&invalid), "The batch has ended: it is invalid. Reason: not enough.");
}

#[test]
fn service_is_explained_by_its_oldest_batch() {
    let owned = service(Some(11));
    let explain = |service: &ServiceOverview, oldest: Option<&BatchDetails>| {
        let facts = facts_of(service, None, &[]);
        let explanation = ServiceExplanation::new(facts, oldest);
        (explanation.to_string(), explanation.actions().len())
    };
    let delayed = details(stored(0x5a, BatchState::Delayed), None);
    let text = "The service a::b has 2 open batches; 1 under way. The oldest one, 5a5a5a5a5a5a, waits for \
                its next try.";
    assert_eq!(explain(&owned, Some(&delayed)), (text.to_owned(), 2));
    let idle = ServiceOverview { open: 0, ..service(None) };
    let text = "The service a::b has no open batches.";
    assert_eq!(explain(&idle, None), (text.to_owned(), 0));
}

/// The verbs that are offered for a batch that waits for this reason, in every state in which it can.
fn offered(reason: &WaitReason) -> BTreeSet<&'static str> {
    let (owned, pause) = (service(Some(11)), pause());
    let pause = matches!(reason, WaitReason::Paused { .. }).then_some(&pause);
    let of = |batch: StoredBatch, ahead: Option<Ahead>| {
        let details = details(batch, ahead);
        let waits_for_it = details.wait().is_some_and(|wait| wait.reason == reason);
        let facts = facts_of(&owned, pause, &[]);
        let verbs = if waits_for_it { actions(&details, Some(facts)) } else { Vec::new() };
        verbs.into_iter().map(|(verb, _)| verb)
    };
    let in_lanes = BatchState::ALL.into_iter().flat_map(|state| {
        let parked = StoredBatch { parked: true, ..stored(1, state) };
        let mut late = stored(1, state);
        (late.progress.earlier_may_arrive, late.progress.invalid_reported) = (true, true);
        [stored(1, state), held(1, state), parked, late]
    });
    let ahead = match reason {
        WaitReason::Halt { .. } => behind(stored(2, BatchState::Invalid), reason.clone()),
        WaitReason::Behind
        | WaitReason::Conflict { .. }
        | WaitReason::Dependency { .. }
        | WaitReason::MissingTransaction { .. }
        | WaitReason::Paused { .. }
        | WaitReason::Lane
        | WaitReason::InFlightWindow
        | WaitReason::NodePlace => Some(Ahead::only(reason.clone())),
        _ => None,
    };
    in_lanes
        .map(|batch| (batch, None))
        .chain([(stored(1, BatchState::New), ahead)])
        .flat_map(|(batch, ahead)| of(batch, ahead))
        .collect()
}

fn pause() -> ServicePause {
    ServicePause {
        since: at(4),
        reason: "maintenance".to_owned(),
        operator: Some("local/ann".to_owned()),
        of_all: false,
        states_differ: false,
    }
}

#[test]
fn each_reason_names_the_actions_that_are_offered() {
    let is_of_batch = |reason: &WaitReason| {
        !matches!(
            reason,
            WaitReason::Lease { .. }
                | WaitReason::Node(_)
                | WaitReason::Busy { .. }
                | WaitReason::Unconfirmed { .. }
                | WaitReason::Lock { .. }
                | WaitReason::Deadline(_)
        )
    };
    for reason in WaitReason::examples() {
        let named = reason.about().actions.iter().map(|verb| verb.as_str()).collect();
        if is_of_batch(&reason) {
            assert_eq!(offered(&reason), named, "{reason:?}");
        } else {
            assert_eq!(named, BTreeSet::new(), "{reason:?}");
        }
    }
}

#[test]
fn batch_that_the_ledger_does_not_report_is_explained() {
    let unconfirmed = |number| WaitReason::Unconfirmed {
        batch_id: ItemId::from_bytes([number; 64]),
        since: at(6),
    };
    let (waits, owned) = ([unconfirmed(1), unconfirmed(2)], service(Some(11)));
    let facts = facts_of(&owned, None, &waits);
    let pending = |number| details(stored(number, BatchState::Pending), None);
    let also = |details: &BatchDetails| BatchExplanation::new(details, Some(facts)).also();
    assert_eq!(also(&pending(2)), [unconfirmed(2)]);
    assert_eq!(also(&pending(3)), []);
    let waiting = details(
        stored(3, BatchState::New),
        behind(stored(1, BatchState::Pending), WaitReason::Behind),
    );
    assert_eq!(also(&waiting), [unconfirmed(1)]);
    let pending = pending(2);
    let service = ServiceExplanation::new(facts, Some(&pending));
    assert_eq!(service.waits(), []);
    let text = service.to_string();
    let told = "The ledger did not report the batch 020202020202 when it was last asked; the server asks it for evidence.";
    assert!(text.ends_with(told), "{text}");
}

#[test]
fn causes_of_the_service_are_shown_besides_the_wait() {
    let lock = WaitReason::Lock { since: at(6) };
    let waits = [outage(), lock.clone(), WaitReason::InFlightWindow];
    let (unclaimed, deadline) = (service(None), Deadline::Height(7));
    let facts = facts_of(&unclaimed, None, &waits);
    let pending =
        BatchDetails { deadline: Some(deadline), ..details(stored(1, BatchState::Pending), None) };
    let explanation = BatchExplanation::new(&pending, Some(facts));
    let lease = WaitReason::Lease { expired: None };
    assert_eq!(explanation.also(), [WaitReason::Deadline(deadline), lease, outage(), lock]);
    let text = explanation.to_string();
    let told = "Another transaction of the database keeps rows of its service locked.";
    assert!(text.ends_with(told), "{text}");
    assert_eq!(ServiceExplanation::new(facts, None).waits()[1..], waits[..2]);
    let ended = details(stored(1, BatchState::Committed), None);
    assert_eq!(BatchExplanation::new(&ended, Some(facts)).also(), []);
}
