use std::collections::{HashMap, VecDeque};

use grid_batch_core::{ItemId, Timestamp};

/// The statuses of a service's last hundred batches. They are lost at a restart.
#[derive(Debug, Default)]
pub(super) struct History {
    infos: HashMap<ItemId, BatchInfo>,
    /// The oldest first.
    order: VecDeque<ItemId>,
}

#[derive(Debug)]
pub(super) struct BatchInfo {
    pub(super) status: BatchStatus,
    /// When the node first saw the batch. A new status does not change it.
    pub(super) since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BatchStatus {
    Pending,
    Valid(Vec<ItemId>),
    Committed(Vec<ItemId>),
    Invalid(InvalidTransaction),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InvalidTransaction {
    pub(super) id: ItemId,
    pub(super) message: String,
}

impl History {
    const SIZE: usize = 100;

    pub(super) fn get(&self, id: &ItemId) -> Option<&BatchInfo> {
        self.infos.get(id)
    }

    /// Sets the status of a batch.
    pub(super) fn set(&mut self, id: ItemId, status: BatchStatus, now: Timestamp) {
        if let Some(info) = self.infos.get_mut(&id) {
            info.status = status;
            return;
        }
        self.infos.insert(id, BatchInfo { status, since: now });
        self.order.push_back(id);
        if self.order.len() > Self::SIZE
            && let Some(oldest) = self.order.pop_front()
        {
            self.infos.remove(&oldest);
        }
    }

    /// Changes Valid to Committed. Does nothing for a batch that is forgotten.
    pub(super) fn commit(&mut self, id: &ItemId) {
        if let Some(info) = self.infos.get_mut(id)
            && let BatchStatus::Valid(transactions) = &mut info.status
        {
            info.status = BatchStatus::Committed(std::mem::take(transactions));
        }
    }
}
