//! The path of a result: the ledger is queried, and the result is recorded in the store.

use grid_batch_core::batches::{BatchState, Event, LedgerStatus, transition};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::{AttemptId, Outcome};

use crate::{
    action::{
        Action, BatchAt, ClockJump,
        ResultStep::{self, Query, Record, Recover},
        WorkerId,
    },
    database, ledger,
    protocol::{AbsenceRule, ClockRule, Fence, Protocol, RecoveryRule, WaitRule},
    state::{Batch, BatchSet, EarlierInvalid, Service, State, Task},
    submissions,
};

pub fn add_actions(protocol: &Protocol, state: &State, actions: &mut Vec<Action>) {
    for worker in state.running_workers() {
        for task in state.memory(worker).tasks.iter().filter(|task| !task.is_sending()) {
            actions.push(Action::Result(Record, worker, task.batch));
        }
        for batch in state.services[worker.service].in_lanes() {
            if finds_lost_batch(state, worker, batch) {
                actions.push(Action::Result(Recover, worker, batch));
            }
            if query_result(protocol, state, worker, batch).is_some() {
                actions.push(Action::Result(Query, worker, batch));
            }
        }
    }
}

pub fn apply_step(
    protocol: &Protocol,
    state: &mut State,
    step: ResultStep,
    worker: WorkerId,
    batch: usize,
) {
    match step {
        Recover => recover(protocol, state, worker, batch),
        Query => {
            if let Some(task) = query_result(protocol, state, worker, batch) {
                state.memory_mut(worker).begin(task);
            }
        }
        Record => {
            if let Some(task) = state.memory_mut(worker).end(batch) {
                record(protocol, state, worker.service, task);
            }
        }
    }
}

/// A result that the fence will refuse. Discarding it first makes no difference, and reduces the
/// number of states.
pub fn stale_result(protocol: &Protocol, state: &State) -> Option<Action> {
    // After the database went back, the fence may permit what it would have refused before.
    if protocol.rules.fence != Fence::AttemptId || state.faults_left.databases > 0 {
        return None;
    }
    let stale_task = |worker: WorkerId| {
        let epoch = state.services[worker.service].epoch;
        let mut tasks = state.memory(worker).tasks.iter();
        let task = tasks.find(|task| !task.is_sending() && task.attempt_id.epoch != epoch)?;
        Some(Action::Result(Record, worker, task.batch))
    };
    state.running_workers().find_map(stale_task)
}

/// Whether this batch in a lane was passed to a submitter in an earlier epoch.
fn finds_lost_batch(state: &State, worker: WorkerId, number: usize) -> bool {
    let service = &state.services[worker.service];
    let batch = &service.batches[number];
    let is_lost = batch.progress.state == BatchState::Submitting && batch.taken_in < service.epoch;
    state.owns(worker)
        && state.memory(worker).is_free_for(BatchSet::one(number), service.lanes)
        && is_lost
}

fn recover(protocol: &Protocol, state: &mut State, worker: WorkerId, batch: usize) {
    let progress = &mut state.batch_mut(BatchAt { service: worker.service, batch }).progress;
    match protocol.rules.recovery {
        RecoveryRule::MarkInDoubt => {
            let lost = Event::OwnerLost { attempt: progress.attempts };
            *progress = transition(*progress, lost).unwrap_or(*progress);
        }
        RecoveryRule::SendAgain => {
            progress.attempts += 1;
            submissions::begin(protocol, state, worker, batch, BatchSet::one(batch));
        }
    }
}

/// The ledger's answer about this batch in a lane, if it changes anything.
fn query_result(
    protocol: &Protocol,
    state: &State,
    worker: WorkerId,
    number: usize,
) -> Option<Task> {
    let service = &state.services[worker.service];
    let batch = &service.batches[number];
    let may_query = state.owns(worker)
        && state.memory(worker).is_free_for(BatchSet::one(number), service.lanes)
        && batch.progress.state.awaits_poller();
    if !may_query {
        return None;
    }
    let attempt = batch.progress.attempts;
    let result = match reported_status(protocol, state, worker, batch) {
        _ if batch.progress.waits_for_earlier()
            && !earlier_may_be_applied(protocol, service, number) =>
        {
            Event::EarlierCannotArrive { attempt }
        }
        LedgerStatus::Committed => {
            Event::Status { attempt: Some(attempt), status: LedgerStatus::Committed }
        }
        _ if protocol.rules.expired_batches_end && batch.ledger.is_past_its_time => {
            Event::Evidence { attempt, evidence: Evidence::NeverApplicable }
        }
        LedgerStatus::NotReported if is_absent(protocol, state, worker, number) => {
            Event::Evidence { attempt, evidence: absence(service, batch) }
        }
        status => Event::Status { attempt: Some(attempt), status },
    };
    let result = while_held(batch, result);
    let changes_anything = transition(batch.progress, result) != Ok(batch.progress);
    let attempt_id = AttemptId { attempt, epoch: service.epoch };
    changes_anything.then_some(Task {
        batch: number,
        attempt_id,
        started_in_time: true,
        list: BatchSet::one(number),
        result: Some(result),
    })
}

/// Whether an instance that waits knows that an earlier attempt may still be applied: it has not arrived, or was not
/// executed yet.
fn earlier_may_be_applied(protocol: &Protocol, service: &Service, number: usize) -> bool {
    let waits_long_enough =
        protocol.rules.invalid_is_final_after >= protocol.environment.ledger.late_arrival_limit;
    let has_arrived_late =
        service.batches[number].ledger.earlier_invalid == EarlierInvalid::BeforeLateArrival;
    waits_long_enough && (service.may_arrive(number) || has_arrived_late)
}

/// What the absence of a batch proves. One of a list that was accepted and is absent now was lost.
fn absence(service: &Service, batch: &Batch) -> Evidence {
    match batch.progress.state {
        BatchState::Pending | BatchState::Valid if service.list > 1 => Evidence::Lost,
        _ => Evidence::Absent,
    }
}

/// The event that counts for a batch that may be held until a decision.
fn while_held(batch: &Batch, event: Event) -> Event {
    if batch.is_held { event.while_held_until_decision(batch.progress) } else { event }
}

/// The status that the worker's ledger reports.
fn reported_status(
    protocol: &Protocol,
    state: &State,
    worker: WorkerId,
    batch: &Batch,
) -> LedgerStatus {
    let is_stray = state.instances[worker.instance].is_stray;
    match ledger::status(protocol, batch) {
        _ if is_stray && batch.ledger.elsewhere > 0 => LedgerStatus::Committed,
        _ if is_stray => LedgerStatus::NotReported,
        LedgerStatus::Invalid
            if protocol.rules.invalid_asks_other_nodes && batch.ledger.is_refused_by_follower =>
        {
            LedgerStatus::NotReported
        }
        LedgerStatus::Invalid
            if protocol.rules.asks_before_sending
                && batch.ledger.earlier_invalid == EarlierInvalid::BeforeAttempt =>
        {
            LedgerStatus::Pending
        }
        status => status,
    }
}

/// Whether a POST that timed out counts as lost.
fn has_waited(protocol: &Protocol, state: &State, worker: WorkerId, number: usize) -> bool {
    let jump = match protocol.rules.clock {
        ClockRule::Monotonic => None,
        ClockRule::TimeOfDay => state.instances[worker.instance].clock_jump,
    };
    let is_from_mark = protocol.rules.wait == WaitRule::FromMark;
    match jump {
        Some(ClockJump::Forward) => true,
        Some(ClockJump::Back) => false,
        None if is_from_mark && protocol.environment.instances_pause => true,
        None if !state.services[worker.service].may_arrive(number) => true,
        None => {
            let counts_after = if state.services[worker.service].is_listed(number) {
                protocol.rules.listed_absence_counts_after
            } else {
                protocol.rules.absence_counts_after
            };
            counts_after < protocol.environment.ledger.late_arrival_limit
        }
    }
}

/// Whether a batch that the ledger does not report counts as absent.
fn is_absent(protocol: &Protocol, state: &State, worker: WorkerId, number: usize) -> bool {
    let batch = &state.services[worker.service].batches[number];
    let was_sent_by_owner = batch.taken_in == state.memory(worker).epoch;
    // A stray instance may be of a kind whose report is enough.
    if state.instances[worker.instance].is_stray {
        return true;
    }
    has_waited(protocol, state, worker, number)
        && match protocol.rules.absence {
            AbsenceRule::Never => false,
            AbsenceRule::Reported => true,
            AbsenceRule::Observed => batch.ledger.observed,
            AbsenceRule::ObservedBySender => batch.ledger.observed && was_sent_by_owner,
        }
}

/// Records a result if the fence permits it and core's `transition` accepts it.
fn record(protocol: &Protocol, state: &mut State, service: usize, task: Task) {
    let Task { batch, attempt_id, result: Some(event), .. } = task else { return };
    if protocol.rules.fence == Fence::AttemptId && attempt_id.epoch != state.services[service].epoch
    {
        return;
    }
    let number = batch;
    let batch = state.batch_mut(BatchAt { service, batch });
    if proves_failure(event) {
        batch.last_failed_attempt = batch.last_failed_attempt.max(attempt_id.attempt);
    }
    let event = match protocol.rules.fence {
        Fence::None => for_attempt(event, batch.progress.attempts),
        Fence::AttemptId | Fence::Attempt => event,
    };
    let event = while_held(batch, event);
    batch.progress = transition(batch.progress, event).unwrap_or(batch.progress);
    if protocol.rules.overtaken_are_held {
        hold_overtaken(&mut state.services[service], number);
    }
    if protocol.rules.dependents_of_invalid_end {
        end_dependents(&mut state.services[service], number);
    }
    database::put_restored_in_doubt(&mut state.services[service]);
}

/// Holds what was sent before a committed batch, conflicts with it and is open: it may have been invalid.
fn hold_overtaken(service: &mut Service, number: usize) {
    let (before, after) = service.batches.split_at_mut(number);
    if after[0].progress.state != BatchState::Committed {
        return;
    }
    for (earlier, batch) in before.iter_mut().enumerate() {
        let conflicts = after[0].relations.conflicts.contains(earlier);
        batch.is_held |= conflicts && batch.was_tried() && !batch.has_ended();
    }
}

/// What depends on a batch that ended as invalid ends too, without being sent, and so on.
fn end_dependents(service: &mut Service, number: usize) {
    if service.batches[number].progress.state != BatchState::Invalid {
        return;
    }
    for dependent in number + 1..service.batches.len() {
        let batch = &mut service.batches[dependent];
        let depends = batch.relations.dependencies.contains(number);
        if depends && batch.progress.state == BatchState::New && !batch.is_restored {
            batch.progress =
                transition(batch.progress, Event::DependencyInvalid).unwrap_or(batch.progress);
            end_dependents(service, dependent);
        }
    }
}

fn proves_failure(event: Event) -> bool {
    matches!(
        event,
        Event::Outcome { outcome: Outcome::NotSent | Outcome::Parked, .. }
            | Event::Evidence { evidence: Evidence::Absent | Evidence::Lost, .. }
    )
}

/// The same event for another attempt.
fn for_attempt(event: Event, attempt: u32) -> Event {
    match event {
        Event::Outcome { outcome, .. } => Event::Outcome { attempt, outcome },
        Event::Evidence { evidence, .. } => Event::Evidence { attempt, evidence },
        Event::Status { status, .. } => Event::Status { attempt: Some(attempt), status },
        Event::EarlierCannotArrive { .. } => Event::EarlierCannotArrive { attempt },
        Event::Decided { decision, .. } => Event::Decided { attempt, decision },
        Event::Taken
        | Event::OwnerLost { .. }
        | Event::DatabaseRestored
        | Event::DependencyInvalid => event,
    }
}
