//! Which states are alike: nothing that can happen from here on tells them apart, so that one of
//! them stands for all.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    mem,
};

use grid_batch_core::Progress;
use stateright::Representative;

use crate::state::{Batch, State};

impl Representative for State {
    fn representative(&self) -> Self {
        let mut state = self.clone();
        for service in 0..state.services.len() {
            state.say_only_whether_epochs_are_the_present(service);
            state.services[service].batches.iter_mut().for_each(forget_how_it_ended);
        }
        state.put_instances_in_order();
        state
    }
}

const NONE: u64 = 0;
const PAST: u64 = 1;
const PRESENT: u64 = 2;

impl State {
    /// Epochs only rise, and are only compared with the present one.
    fn say_only_whether_epochs_are_the_present(&mut self, service: usize) {
        let present = mem::replace(&mut self.services[service].epoch, PRESENT);
        let say = |epoch: &mut u64| {
            *epoch = match *epoch {
                NONE => NONE,
                epoch if epoch == present => PRESENT,
                _ => PAST,
            }
        };
        self.services[service].batches.iter_mut().for_each(|batch| say(&mut batch.taken_in));
        for instance in &mut self.instances {
            let work = &mut instance.desks[service];
            say(&mut work.epoch);
            work.hand.iter_mut().for_each(|hand| say(&mut hand.attempt_id.epoch));
        }
    }

    /// Which instance is which makes no difference.
    fn put_instances_in_order(&mut self) {
        let mut order: Vec<usize> = (0..self.instances.len()).collect();
        order.sort_by_cached_key(|&instance| self.looks(instance));
        self.instances = order.iter().map(|&was| self.instances[was].clone()).collect();
        for service in &mut self.services {
            let place = |claimant| order.iter().position(|&was| was == claimant);
            service.claimant = service.claimant.and_then(place);
        }
    }

    /// All that tells one instance from another, as a number to sort by.
    fn looks(&self, instance: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.instances[instance].hash(&mut hasher);
        for service in &self.services {
            (service.claimant == Some(instance)).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Of a batch that has ended nothing is asked any more, and nothing changes its record.
fn forget_how_it_ended(batch: &mut Batch) {
    if batch.progress.state.is_terminal() {
        batch.progress = Progress { attempts: 0, ..batch.progress };
        (batch.taken_in, batch.cleared) = (0, 0);
        (batch.ledger.known, batch.ledger.watched) = (false, false);
    }
}
