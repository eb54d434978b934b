use std::fmt;

use crate::{AttemptId, HeaderId, ServiceId, monitor::BatchResult};

/// A batch that was marked as being with a submitter, and is to be handed to one.
#[derive(Clone, PartialEq, Eq)]
pub struct TakenBatch {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: HeaderId,
    /// Which attempt this is, counted from 1.
    pub attempt: u32,
    /// The service's epoch when it was taken.
    pub epoch: u64,
    /// The bytes, exactly as they were handed in.
    pub serialized_batch: Vec<u8>,
}

impl TakenBatch {
    /// What goes with the submission.
    pub fn attempt_id(&self) -> AttemptId {
        AttemptId { attempt: self.attempt, epoch: self.epoch }
    }
}

impl fmt::Debug for TakenBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakenBatch")
            .field("service_id", &self.service_id)
            .field("batch_id", &self.batch_id)
            .field("attempt", &self.attempt)
            .field("epoch", &self.epoch)
            .field("bytes", &self.serialized_batch.len())
            .finish()
    }
}

/// A store that hands out batches a round at a time.
pub trait RoundStore: Send {
    /// Up to `limit` services that have a batch to be tried now, in the order of their names, from
    /// the one after `after`.
    fn ready_services(
        &self,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceId>>;

    /// Takes the next batch of each of these services that has one to be tried now, and marks it
    /// durably before it is answered. A service gives at most one.
    fn take_round(&self, services: &[ServiceId]) -> BatchResult<Vec<TakenBatch>>;

    /// Takes batches back that were certainly not sent, to be taken again at any time.
    fn give_back(&self, batches: &[TakenBatch]) -> BatchResult<()>;
}
