//! The path of a batch from the store to the ledger: the mark, the POST, and its outcome.

use grid_batch_core::batches::{Event, LedgerStatus, transition};
use grid_batch_core::ledger::{AttemptId, Outcome};

use crate::{
    action::{
        Action, BatchAt,
        SubmissionStep::{
            self, Arrive, ArriveAlone, ArriveAtFollower, ArriveUnanswered, GiveUp, Mark, MarkList,
            NotSent,
        },
        WorkerId,
    },
    ledger,
    protocol::{AbsenceRule, MarkRule, NodeRule, Protocol},
    state::{BatchSet, EarlierInvalid, Lease, State, Task},
};

pub fn add_actions(protocol: &Protocol, state: &State, actions: &mut Vec<Action>) {
    for worker in state.running_workers() {
        if may_mark(protocol, state, worker) {
            add_marks(protocol, state, worker, actions);
        }
        for task in state.memory(worker).tasks.iter().filter(|task| task.is_first_of_post()) {
            let mut add = |step| actions.push(Action::Submission(step, worker, task.batch));
            add(Arrive);
            if state.faults_left.ledger > 0 {
                [NotSent, ArriveUnanswered, GiveUp].into_iter().for_each(&mut add);
                if task.list != task.list.first() {
                    add(ArriveAlone);
                }
                if may_send_to_follower(protocol, state, worker) {
                    add(ArriveAtFollower);
                }
            }
        }
    }
}

/// Whether the follower is chosen. It counts as a fault of the ledger, so that it is not chosen
/// again and again.
fn may_send_to_follower(protocol: &Protocol, state: &State, worker: WorkerId) -> bool {
    protocol.environment.has_follower
        && match protocol.rules.node {
            NodeRule::InTurn => true,
            NodeRule::HasAppliedTheLast => !state.services[worker.service].follower_lags,
        }
}

/// The batches that are next, each by itself or in a list.
fn add_marks(protocol: &Protocol, state: &State, worker: WorkerId, actions: &mut Vec<Action>) {
    let service = &state.services[worker.service];
    let is_free = |batches| state.memory(worker).is_free_for(batches, service.lanes);
    let (next, list) = service.next(protocol.rules.resend);
    for batch in next.into_iter().filter(|&batch| is_free(BatchSet::one(batch))) {
        actions.push(Action::Submission(Mark, worker, batch));
    }
    if let [first, _, ..] = list[..]
        && is_free(list.into_iter().collect())
    {
        actions.push(Action::Submission(MarkList, worker, first));
    }
}

/// Whether a batch in a lane may be marked. A submission that starts after the idle expiry
/// could still be running at the full expiry.
fn may_mark(protocol: &Protocol, state: &State, worker: WorkerId) -> bool {
    match protocol.rules.mark {
        MarkRule::OwnerBeforeIdleExpiry => {
            state.owns(worker) && state.lease(worker) == Lease::Valid
        }
        MarkRule::OwnerBeforeFullExpiry => {
            state.owns(worker) && state.lease(worker) != Lease::FullyExpired
        }
        MarkRule::FormerOwner => state.memory(worker).epoch > 0,
    }
}

pub fn apply_step(
    protocol: &Protocol,
    state: &mut State,
    step: SubmissionStep,
    worker: WorkerId,
    batch: usize,
) {
    match step {
        Mark => mark(protocol, state, worker, BatchSet::one(batch)),
        MarkList => {
            let (_, list) = state.services[worker.service].next(protocol.rules.resend);
            mark(protocol, state, worker, list.into_iter().collect());
        }
        _ => {
            let task = state.memory(worker).task(batch);
            let list = task.map_or(BatchSet::default(), |task| task.list);
            send(protocol, state, step, worker, list);
            // Of a list, those that were not sent return to the store.
            finish(state, worker, list, Outcome::Parked);
        }
    }
}

/// A step of a request with these batches.
fn send(
    protocol: &Protocol,
    state: &mut State,
    step: SubmissionStep,
    worker: WorkerId,
    list: BatchSet,
) {
    let first = list.first();
    match step {
        Mark | MarkList => {}
        NotSent => finish_with_fault(state, worker, first, Outcome::NotSent),
        Arrive => arrive_in_time(protocol, state, worker, list),
        ArriveAlone => {
            state.faults_left.ledger -= 1;
            arrive_in_time(protocol, state, worker, first);
        }
        ArriveAtFollower => {
            for batch in list.iter() {
                let at = BatchAt { service: worker.service, batch };
                ledger::accept_at_follower(protocol, state, at);
            }
            finish_with_fault(state, worker, list, Outcome::Accepted);
        }
        ArriveUnanswered => {
            arrive(protocol, state, worker, list);
            finish_with_fault(state, worker, list, Outcome::Ambiguous);
        }
        GiveUp => {
            if !protocol.environment.ledger.late_arrival_limit.is_zero() {
                state.services[worker.service].delay_post(list);
            }
            finish_with_fault(state, worker, list, Outcome::Ambiguous);
        }
    }
}

fn mark(protocol: &Protocol, state: &mut State, worker: WorkerId, list: BatchSet) {
    for batch in list.iter() {
        let marked = state.batch_mut(BatchAt { service: worker.service, batch });
        if let Ok(taken) = transition(marked.progress, Event::Taken) {
            marked.progress = taken;
            begin(protocol, state, worker, batch, list);
        }
    }
}

/// The POST arrives in time, and is answered. A batch that the node has already ends a list, and is not sent.
fn arrive_in_time(protocol: &Protocol, state: &mut State, worker: WorkerId, list: BatchSet) {
    let known = |batch: usize| known_outcome(protocol, state, worker, batch);
    let new: BatchSet = list.iter().take_while(|&batch| known(batch).is_none()).collect();
    match list.iter().next().and_then(known) {
        Some(outcome) => finish(state, worker, list.first(), outcome),
        None => {
            arrive(protocol, state, worker, new);
            finish(state, worker, new, Outcome::Accepted);
        }
    }
}

/// Passes the batch, whose attempt was just counted, to the submitter.
pub fn begin(
    protocol: &Protocol,
    state: &mut State,
    worker: WorkerId,
    batch: usize,
    list: BatchSet,
) {
    check_earlier_attempt(state, BatchAt { service: worker.service, batch });
    let service = &mut state.services[worker.service];
    let epoch = service.epoch;
    let marked = &mut service.batches[batch];
    marked.taken_in = epoch;
    marked.ledger.observed =
        !matches!(protocol.rules.absence, AbsenceRule::Never | AbsenceRule::Reported);
    let attempt_id = AttemptId { attempt: marked.progress.attempts, epoch };
    let started_in_time = state.lease(worker) == Lease::Valid;
    let task = Task { batch, attempt_id, started_in_time, list, result: None };
    state.memory_mut(worker).begin(task);
}

fn check_earlier_attempt(state: &mut State, at: BatchAt) {
    let BatchAt { service, batch } = at;
    let earlier = &state.services[service].batches[batch];
    let is_sent_again = earlier.progress.attempts > 1;
    let blindly = is_sent_again && earlier.last_failed_attempt + 1 < earlier.progress.attempts;
    let ledger = earlier.ledger;
    let may_still_come =
        state.services[service].may_arrive(batch) || ledger.accepted > 0 || ledger.applied > 0;
    let is_being_sent = state
        .running_workers()
        .any(|worker| worker.service == service && state.memory(worker).is_sending(batch));
    state.violations.sent_blindly |= blindly;
    state.violations.sent_too_early |= may_still_come || is_being_sent;
}

/// The outcome without a POST, if the ledger is asked before and has the batch.
fn known_outcome(
    protocol: &Protocol,
    state: &State,
    worker: WorkerId,
    batch: usize,
) -> Option<Outcome> {
    let is_stray = state.instances[worker.instance].is_stray;
    let batch = &state.services[worker.service].batches[batch];
    match ledger::status(protocol, batch) {
        _ if is_stray || !protocol.rules.asks_before_sending => None,
        LedgerStatus::Committed => Some(Outcome::Committed),
        LedgerStatus::Pending => Some(Outcome::Accepted),
        _ => None,
    }
}

fn arrive(protocol: &Protocol, state: &mut State, worker: WorkerId, list: BatchSet) {
    let is_stray = state.instances[worker.instance].is_stray;
    for batch in list.iter() {
        let at = BatchAt { service: worker.service, batch };
        if is_stray {
            state.batch_mut(at).ledger.elsewhere += 1;
        } else {
            ledger::accept(protocol, state, at, EarlierInvalid::BeforeAttempt);
        }
    }
}

/// The submissions of these batches that have no outcome yet get this one.
fn finish(state: &mut State, worker: WorkerId, list: BatchSet, outcome: Outcome) {
    let tasks = state.memory_mut(worker).tasks.iter_mut();
    for task in tasks.filter(|task| task.is_sending() && list.contains(task.batch)) {
        task.result = Some(Event::Outcome { attempt: task.attempt_id.attempt, outcome });
    }
}

fn finish_with_fault(state: &mut State, worker: WorkerId, list: BatchSet, outcome: Outcome) {
    state.faults_left.ledger -= 1;
    finish(state, worker, list, outcome);
}
