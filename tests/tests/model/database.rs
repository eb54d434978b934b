//! A database that goes back to an earlier state of itself: a backup that was restored, or a standby
//! that was promoted and had not received everything. Instances may go on running.

use grid_batch_core::batches::{Event, transition};

use crate::{
    action::{
        Action,
        DatabaseStep::{self, Copy, GoBack},
    },
    protocol::{Protocol, RestoreRule},
    state::{Batch, BatchCopy, Service, ServiceCopy, State},
};

pub fn add_actions(state: &State, actions: &mut Vec<Action>) {
    if state.faults_left.databases == 0 {
        return;
    }
    match &state.copy {
        None => actions.push(Action::Database(Copy)),
        // Going back to the same state changes nothing, and is left out.
        Some(copy) if *copy != copy_of(state) => actions.push(Action::Database(GoBack)),
        Some(_) => {}
    }
}

pub fn apply_step(protocol: &Protocol, state: &mut State, step: DatabaseStep) {
    match step {
        Copy => state.copy = Some(copy_of(state)),
        GoBack => go_back(protocol, state),
    }
}

fn copy_of(state: &State) -> Vec<ServiceCopy> {
    let copy = |service: &Service| ServiceCopy {
        owner: service.owner,
        epoch: service.epoch,
        batches: service.batches.iter().map(copy_of_batch).collect(),
    };
    state.services.iter().map(copy).collect()
}

fn copy_of_batch(batch: &Batch) -> BatchCopy {
    let Batch { progress, taken_in, last_failed_attempt, .. } = *batch;
    BatchCopy { progress, taken_in, last_failed_attempt }
}

fn go_back(protocol: &Protocol, state: &mut State) {
    state.faults_left.databases -= 1;
    let Some(copies) = state.copy.take() else { return };
    for (number, copy) in copies.into_iter().enumerate() {
        let lost_epoch = state.services[number].epoch;
        let service = &mut state.services[number];
        (service.owner, service.epoch) = (copy.owner, copy.epoch);
        for (batch, copy) in service.batches.iter_mut().zip(copy.batches) {
            batch.progress = copy.progress;
            batch.taken_in = copy.taken_in;
            batch.last_failed_attempt = copy.last_failed_attempt;
        }
        mark_in_doubt(protocol, service);
        if protocol.rules.restore_raises_epochs {
            service.owner = None;
            service.epoch = lost_epoch.max(copy.epoch) + 1;
        }
    }
}

fn mark_in_doubt(protocol: &Protocol, service: &mut Service) {
    let marked = match protocol.rules.restore {
        RestoreRule::AllBatches => (0..service.batches.len()).collect(),
        RestoreRule::Heads => service.in_lanes(),
        RestoreRule::Nothing => vec![],
    };
    for batch in marked {
        service.batches[batch].is_restored = !service.batches[batch].has_ended();
    }
    put_restored_in_doubt(service);
}

/// Puts the batches in the lanes in doubt that were open when the database went back, once.
pub fn put_restored_in_doubt(service: &mut Service) {
    for batch in service.in_lanes() {
        let batch = &mut service.batches[batch];
        if batch.is_restored {
            batch.is_restored = false;
            batch.progress =
                transition(batch.progress, Event::DatabaseRestored).unwrap_or(batch.progress);
        }
    }
}
