//! Maps equivalent states to one representative, which has the same future.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    mem,
};

use grid_batch_core::batches::Progress;
use stateright::Representative;

use crate::state::{Batch, State};

impl Representative for State {
    fn representative(&self) -> Self {
        let mut state = self.clone();
        // The copy has epochs and numbers of instances too.
        if state.copy.is_some() {
            return state;
        }
        for service in 0..state.services.len() {
            state.normalize_epochs(service);
            state.services[service].batches.iter_mut().for_each(clear_ended_batch);
        }
        state.sort_instances();
        state
    }
}

const NONE: u64 = 0;
const PAST: u64 = 1;
const PRESENT: u64 = 2;

impl State {
    /// Replaces epochs by none, past or present. Epochs only rise, and are only compared with the
    /// present one.
    fn normalize_epochs(&mut self, service: usize) {
        let present = mem::replace(&mut self.services[service].epoch, PRESENT);
        let normalize = |epoch: &mut u64| {
            *epoch = match *epoch {
                NONE => NONE,
                epoch if epoch == present => PRESENT,
                _ => PAST,
            }
        };
        self.services[service].batches.iter_mut().for_each(|batch| normalize(&mut batch.taken_in));
        for instance in &mut self.instances {
            let memory = &mut instance.workers[service];
            normalize(&mut memory.epoch);
            memory.tasks.iter_mut().for_each(|task| normalize(&mut task.attempt_id.epoch));
        }
    }

    /// Sorts the instances, because their numbers make no difference.
    fn sort_instances(&mut self) {
        let mut order: Vec<usize> = (0..self.instances.len()).collect();
        order.sort_by_cached_key(|&instance| self.sort_key(instance));
        self.instances = order.iter().map(|&old| self.instances[old].clone()).collect();
        for service in &mut self.services {
            let new_number = |owner| order.iter().position(|&old| old == owner);
            service.owner = service.owner.and_then(new_number);
        }
    }

    /// A key that distinguishes the instances.
    fn sort_key(&self, instance: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.instances[instance].hash(&mut hasher);
        for service in &self.services {
            (service.owner == Some(instance)).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Clears what has no effect after a batch has ended.
fn clear_ended_batch(batch: &mut Batch) {
    if batch.progress.state.is_terminal() {
        batch.progress = Progress { attempts: 0, ..batch.progress };
        (batch.taken_in, batch.last_failed_attempt, batch.is_held) = (0, 0, false);
        (batch.ledger.known, batch.ledger.observed) = (false, false);
    }
}
