//! The path of a batch from the store to the ledger: the mark, the POST, and its outcome.

use grid_batch_core::batches::{BatchState, Event, LedgerStatus, transition};
use grid_batch_core::ledger::{AttemptId, Outcome};
use grid_batch_core::queue::StrategyKind;

use crate::{
    action::{
        Action, BatchAt,
        SubmissionStep::{self, Arrive, ArriveAtFollower, ArriveUnanswered, GiveUp, Mark, NotSent},
        WorkerId,
    },
    ledger,
    protocol::{AbsenceRule, MarkRule, NodeRule, Protocol},
    state::{EarlierInvalid, Lease, Service, State, Task},
};

pub fn add_actions(protocol: &Protocol, state: &State, actions: &mut Vec<Action>) {
    for worker in state.running_workers() {
        for batch in state.services[worker.service].in_lanes() {
            if may_mark(protocol, state, worker, batch) {
                actions.push(Action::Submission(Mark, worker, batch));
            }
        }
        for task in state.memory(worker).tasks.iter().filter(|task| task.is_sending()) {
            let mut add = |step| actions.push(Action::Submission(step, worker, task.batch));
            add(Arrive);
            if state.faults_left.ledger > 0 {
                [NotSent, ArriveUnanswered, GiveUp].into_iter().for_each(&mut add);
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

/// Whether this batch in a lane may be marked. A submission that starts after the idle expiry
/// could still be running at the full expiry.
fn may_mark(protocol: &Protocol, state: &State, worker: WorkerId, batch: usize) -> bool {
    let memory = state.memory(worker);
    let claims = match protocol.rules.mark {
        MarkRule::OwnerBeforeIdleExpiry => {
            state.owns(worker) && state.lease(worker) == Lease::Valid
        }
        MarkRule::OwnerBeforeFullExpiry => {
            state.owns(worker) && state.lease(worker) != Lease::FullyExpired
        }
        MarkRule::FormerOwner => memory.epoch > 0,
    };
    let service = &state.services[worker.service];
    let is_ready = transition(service.batches[batch].progress, Event::Taken).is_ok();
    let is_next =
        protocol.strategy != StrategyKind::Pipeline || are_accepted_before(service, batch);
    claims && memory.is_free_for(batch, service.lanes) && is_ready && is_next
}

/// Whether the ledger has accepted all batches before this one.
fn are_accepted_before(service: &Service, batch: usize) -> bool {
    service.batches[..batch].iter().all(|earlier| {
        let is_accepted = matches!(earlier.progress.state, BatchState::Pending | BatchState::Valid);
        is_accepted || earlier.has_ended()
    })
}

pub fn apply_step(
    protocol: &Protocol,
    state: &mut State,
    step: SubmissionStep,
    worker: WorkerId,
    batch: usize,
) {
    let at = BatchAt { service: worker.service, batch };
    match step {
        Mark => mark(protocol, state, worker, batch),
        NotSent => finish_with_fault(state, worker, batch, Outcome::NotSent),
        Arrive => {
            let outcome = known_outcome(protocol, state, worker, at).unwrap_or_else(|| {
                arrive(protocol, state, worker, batch);
                Outcome::Accepted
            });
            finish(state, worker, batch, outcome);
        }
        ArriveAtFollower => {
            ledger::accept_at_follower(protocol, state, at);
            finish_with_fault(state, worker, batch, Outcome::Accepted);
        }
        ArriveUnanswered => {
            arrive(protocol, state, worker, batch);
            finish_with_fault(state, worker, batch, Outcome::Ambiguous);
        }
        GiveUp => {
            if !protocol.environment.ledger.late_arrival_limit.is_zero() {
                state.batch_mut(at).delayed_posts += 1;
            }
            finish_with_fault(state, worker, batch, Outcome::Ambiguous);
        }
    }
}

fn mark(protocol: &Protocol, state: &mut State, worker: WorkerId, batch: usize) {
    let marked = state.batch_mut(BatchAt { service: worker.service, batch });
    if let Ok(taken) = transition(marked.progress, Event::Taken) {
        marked.progress = taken;
        begin(protocol, state, worker, batch);
    }
}

/// Passes the batch, whose attempt was just counted, to the submitter.
pub fn begin(protocol: &Protocol, state: &mut State, worker: WorkerId, batch: usize) {
    check_earlier_attempt(state, BatchAt { service: worker.service, batch });
    let service = &mut state.services[worker.service];
    let epoch = service.epoch;
    let marked = &mut service.batches[batch];
    marked.taken_in = epoch;
    marked.ledger.observed =
        !matches!(protocol.rules.absence, AbsenceRule::Never | AbsenceRule::Reported);
    let attempt_id = AttemptId { attempt: marked.progress.attempts, epoch };
    let started_in_time = state.lease(worker) == Lease::Valid;
    state.memory_mut(worker).begin(Task { batch, attempt_id, started_in_time, result: None });
}

fn check_earlier_attempt(state: &mut State, at: BatchAt) {
    let BatchAt { service, batch } = at;
    let earlier = &state.services[service].batches[batch];
    let is_sent_again = earlier.progress.attempts > 1;
    let blindly = is_sent_again && earlier.last_failed_attempt + 1 < earlier.progress.attempts;
    let ledger = earlier.ledger;
    let may_still_come = earlier.delayed_posts > 0 || ledger.accepted > 0 || ledger.applied > 0;
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
    at: BatchAt,
) -> Option<Outcome> {
    let is_stray = state.instances[worker.instance].is_stray;
    let batch = &state.services[at.service].batches[at.batch];
    match ledger::status(protocol, batch) {
        _ if is_stray || !protocol.rules.asks_before_sending => None,
        LedgerStatus::Committed => Some(Outcome::Committed),
        LedgerStatus::Pending => Some(Outcome::Accepted),
        _ => None,
    }
}

fn arrive(protocol: &Protocol, state: &mut State, worker: WorkerId, batch: usize) {
    let is_stray = state.instances[worker.instance].is_stray;
    let at = BatchAt { service: worker.service, batch };
    if is_stray {
        state.batch_mut(at).ledger.elsewhere += 1;
    } else {
        ledger::accept(protocol, state, at, EarlierInvalid::BeforeAttempt);
    }
}

fn finish(state: &mut State, worker: WorkerId, batch: usize, outcome: Outcome) {
    let mut tasks = state.memory_mut(worker).tasks.iter_mut();
    if let Some(task) = tasks.find(|task| task.batch == batch) {
        task.result = Some(Event::Outcome { attempt: task.attempt_id.attempt, outcome });
    }
}

fn finish_with_fault(state: &mut State, worker: WorkerId, batch: usize, outcome: Outcome) {
    state.faults_left.ledger -= 1;
    finish(state, worker, batch, outcome);
}
