//! The ledger: how it handles batches, and which statuses it reports.

use grid_batch_core::{BatchState, LedgerStatus};

use crate::{
    action::{
        Action, BatchAt,
        LedgerStep::{
            self, Apply, DelayedPostArrives, DelayedPostIsLost, FindInvalid, FollowerCatchesUp,
            Restart,
        },
    },
    protocol::{LedgerKind, Protocol},
    state::{Batch, Relations, State},
};

pub fn add_actions(protocol: &Protocol, state: &State, actions: &mut Vec<Action>) {
    let mut add = |step| actions.push(Action::Ledger(step));
    for (service, of) in state.services.iter().enumerate() {
        if of.follower_lags {
            add(FollowerCatchesUp(service));
        }
        for (number, batch) in of.batches.iter().enumerate() {
            let at = BatchAt { service, batch: number };
            if batch.delayed_posts > 0 {
                add(DelayedPostArrives(at));
                add(DelayedPostIsLost(at));
            }
            if batch.ledger.accepted > 0 {
                add(Apply(at));
                if state.faults_left.ledger > 0 {
                    add(FindInvalid(at));
                }
            }
        }
    }
    if state.faults_left.ledger > 0 && forgets_anything(protocol, state) {
        add(Restart);
    }
}

/// A restart that forgets nothing is left out.
fn forgets_anything(protocol: &Protocol, state: &State) -> bool {
    let mut batches = state.services.iter().flat_map(|service| &service.batches);
    batches.any(|batch| {
        let mut after = batch.clone();
        forget(protocol, &mut after);
        after != *batch
    })
}

pub fn apply_step(protocol: &Protocol, state: &mut State, step: LedgerStep) {
    match step {
        DelayedPostArrives(at) => {
            let batch = state.batch_mut(at);
            batch.delayed_posts -= 1;
            accept(protocol, batch);
        }
        DelayedPostIsLost(at) => state.batch_mut(at).delayed_posts -= 1,
        Apply(at) => apply(protocol, state, at),
        FindInvalid(at) => {
            state.faults_left.ledger -= 1;
            let ledger = &mut state.batch_mut(at).ledger;
            ledger.accepted -= 1;
            ledger.is_invalid = true;
            ledger.is_refused_by_follower = false;
        }
        Restart => {
            state.faults_left.ledger -= 1;
            let batches = state.services.iter_mut().flat_map(|service| &mut service.batches);
            batches.for_each(|batch| forget(protocol, batch));
        }
        FollowerCatchesUp(service) => state.services[service].follower_lags = false,
    }
}

/// The ledger receives a POST.
pub fn accept(protocol: &Protocol, batch: &mut Batch) {
    let ledger = &mut batch.ledger;
    let is_present = ledger.accepted > 0 || ledger.applied > 0;
    let is_known = protocol.environment.ledger == LedgerKind::AppliesOnce && is_present;
    let is_invalid_again = protocol.environment.invalid_is_final && ledger.is_invalid;
    ledger.known = true;
    if !is_known && !is_invalid_again {
        ledger.accepted += 1;
        ledger.is_invalid = false;
        ledger.is_refused_by_follower = false;
    }
}

/// The follower receives a POST. If it lags, it finds the batch invalid.
pub fn accept_at_follower(protocol: &Protocol, state: &mut State, at: BatchAt) {
    if state.services[at.service].follower_lags {
        let ledger = &mut state.batch_mut(at).ledger;
        (ledger.known, ledger.is_invalid, ledger.is_refused_by_follower) = (true, true, true);
    } else {
        accept(protocol, state.batch_mut(at));
    }
}

fn apply(protocol: &Protocol, state: &mut State, at: BatchAt) {
    let batches = &state.services[at.service].batches;
    // The database may have lost that the ledger found a batch invalid.
    let is_invalid =
        |batch: &Batch| batch.ledger.is_invalid || batch.progress.state == BatchState::Invalid;
    let is_missing = |batch: &Batch| batch.ledger.applied == 0 && !is_invalid(batch);
    let Relations { conflicts, dependencies, .. } = batches[at.batch].relations;
    let mut earlier = (0..at.batch).filter(|&other| conflicts.contains(other));
    let not_before = earlier.any(|other| is_missing(&batches[other]));
    let mut later = batches.iter().filter(|other| other.relations.conflicts.contains(at.batch));
    let not_after = later.any(|other| other.ledger.applied > 0);
    let mut needed = (0..at.batch).filter(|&other| dependencies.contains(other));
    let before_dependency = needed.any(|other| batches[other].ledger.applied == 0);
    state.violations.out_of_order |= not_before || not_after;
    state.violations.before_dependency |= before_dependency;
    let ledger = &mut state.batch_mut(at).ledger;
    ledger.accepted -= 1;
    ledger.applied += 1;
    state.services[at.service].follower_lags = protocol.environment.has_follower;
}

fn forget(protocol: &Protocol, batch: &mut Batch) {
    let ledger = &mut batch.ledger;
    let remembers_applied = protocol.environment.ledger == LedgerKind::AppliesOnce;
    ledger.accepted = 0;
    ledger.is_invalid &= protocol.environment.invalid_is_final;
    ledger.is_refused_by_follower &= ledger.is_invalid;
    ledger.known &= remembers_applied && ledger.applied > 0;
    ledger.observed = false;
}

/// The status that the ledger reports.
pub fn status(batch: &Batch) -> LedgerStatus {
    let ledger = batch.ledger;
    match ledger {
        _ if !ledger.known => LedgerStatus::NotReported,
        _ if ledger.applied > 0 => LedgerStatus::Committed,
        _ if ledger.is_invalid => LedgerStatus::Invalid,
        _ => LedgerStatus::Pending,
    }
}
