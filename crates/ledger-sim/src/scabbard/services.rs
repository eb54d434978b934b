//! The services of a node. What a request or a moment costs does not grow with their number.

use std::{
    collections::{BTreeSet, HashMap},
    io,
};

use grid_batch_core::{ScopeId, Timestamp};

use super::{circuit, service::ScabbardService};
use crate::common_state::CommonState;

#[derive(Debug, Default)]
pub(super) struct Services {
    all: Vec<ScabbardService>,
    by_id: HashMap<String, usize>,
    /// Those in which something may become due: they have batches, or are shared with other nodes.
    active: BTreeSet<usize>,
    /// How often nodes had joined services of others when it was last looked for shared ones.
    joined: u64,
}

impl Services {
    pub(super) fn add(&mut self, service: ScabbardService) {
        let number = self.all.len();
        self.by_id.insert(service.id().service_id().to_string(), number);
        self.active.insert(number);
        self.all.push(service);
    }

    /// The service of a circuit, which may get a batch.
    pub(super) fn get_mut(&mut self, circuit: &str, service: &str) -> Option<&mut ScabbardService> {
        let number = *self.by_id.get(&format!("{circuit}::{service}"))?;
        self.active.insert(number);
        self.all.get_mut(number)
    }

    /// Does what is due.
    pub(super) fn advance(&mut self, common: &mut CommonState, now: Timestamp) -> io::Result<()> {
        self.find_shared();
        for number in self.active.clone() {
            let service = &mut self.all[number];
            service.advance(common, now)?;
            if service.is_idle() {
                self.active.remove(&number);
            }
        }
        Ok(())
    }

    fn find_shared(&mut self) {
        let joined = circuit::joined();
        if joined != self.joined {
            self.joined = joined;
            self.active.extend(0..self.all.len());
        }
    }

    pub(super) fn are_idle(&self) -> bool {
        self.active.iter().all(|number| self.all[*number].is_idle())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ScabbardService> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ScabbardService> {
        self.all.iter_mut()
    }
}
