use thiserror::Error;

use crate::{HeaderId, NewBatch, ServiceId, monitor::BatchResult};

/// How a request to store something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddOutcome {
    /// It is stored now.
    Stored,
    /// It was stored before; nothing changed.
    AlreadyStored,
}

/// A batch with the same id and other bytes is stored already.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the service {service_id} has the batch {batch_id} already, with other bytes")]
pub struct BatchConflict {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: HeaderId,
}

/// Stores batches durably.
pub trait IntakeStore: Send + Sync {
    /// Stores lists of batches in one commit. Each list is stored as a whole or, on a conflict, not
    /// at all.
    fn add(
        &self,
        lists: &[&[NewBatch]],
    ) -> BatchResult<Vec<Result<Vec<AddOutcome>, BatchConflict>>>;
}
