use std::collections::{HashMap, VecDeque};

use grid_batch_core::{HeaderId, Timestamp};

/// What a node remembers of a service's batches: the last hundred, and none after a restart.
#[derive(Debug, Default)]
pub(super) struct History {
    infos: HashMap<HeaderId, Info>,
    /// The oldest first.
    order: VecDeque<HeaderId>,
}

#[derive(Debug)]
pub(super) struct Info {
    pub(super) status: Status,
    /// When the batch was first seen. A new status does not change it.
    pub(super) since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Status {
    Pending,
    Valid(Vec<HeaderId>),
    Committed(Vec<HeaderId>),
    Invalid(InvalidTransaction),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InvalidTransaction {
    pub(super) id: HeaderId,
    pub(super) message: String,
}

impl History {
    const SIZE: usize = 100;

    pub(super) fn get(&self, id: &HeaderId) -> Option<&Info> {
        self.infos.get(id)
    }

    /// Says where a batch stands now, whatever was said of it before.
    pub(super) fn set(&mut self, id: HeaderId, status: Status, now: Timestamp) {
        if let Some(info) = self.infos.get_mut(&id) {
            info.status = status;
            return;
        }
        self.infos.insert(id, Info { status, since: now });
        self.order.push_back(id);
        if self.order.len() > Self::SIZE
            && let Some(oldest) = self.order.pop_front()
        {
            self.infos.remove(&oldest);
        }
    }

    /// Only what is Valid becomes Committed, and nothing that is forgotten.
    pub(super) fn commit(&mut self, id: &HeaderId) {
        if let Some(info) = self.infos.get_mut(id)
            && let Status::Valid(transactions) = &mut info.status
        {
            info.status = Status::Committed(std::mem::take(transactions));
        }
    }
}
