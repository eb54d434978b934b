use std::fmt;

use crate::batches::{Deadline, TraceContext};
use crate::claims::SubmittedBatch;
use crate::ledger::AttemptId;
use crate::{BatchResult, ItemId, ServiceId};

/// A batch that a store has marked as being with a submitter.
#[derive(Clone, PartialEq, Eq)]
pub struct TakenBatch {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: ItemId,
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// The claim's epoch when it was taken.
    pub epoch: u64,
    /// The bytes, unchanged.
    pub serialized_batch: Vec<u8>,
    /// When its ledger can no longer apply it.
    pub deadline: Option<Deadline>,
    /// The trace of the request that it was sent with.
    pub trace: Option<TraceContext>,
    /// Whether it must be sent in one request with the batch before it in the round, behind that one.
    pub joins_list: bool,
}

impl TakenBatch {
    /// The batch of an attempt, for uses that do not need its bytes.
    pub fn without_bytes(attempt: SubmittedBatch) -> Self {
        let SubmittedBatch { service_id, batch_id, attempt_id } = attempt;
        let AttemptId { attempt, epoch } = attempt_id;
        Self {
            service_id,
            batch_id,
            attempt,
            epoch,
            serialized_batch: Vec::new(),
            deadline: None,
            trace: None,
            joins_list: false,
        }
    }

    /// The id of the attempt.
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

/// A service of which a round may take batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceShare {
    /// The service.
    pub service_id: ServiceId,
    /// The maximum number of its batches.
    pub batches: usize,
}

impl ServiceShare {
    /// One batch of the service.
    pub fn of_one(service_id: ServiceId) -> Self {
        Self { service_id, batches: 1 }
    }
}

/// The result of taking a round.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Round {
    /// The batches that were taken.
    pub batches: Vec<TakenBatch>,
    /// The services whose next batch did not fit, in the order in which they were given.
    pub left: Vec<ServiceId>,
}

impl From<Vec<TakenBatch>> for Round {
    fn from(batches: Vec<TakenBatch>) -> Self {
        Self { batches, left: Vec::new() }
    }
}

/// Decides whether a batch of this many bytes fits into a round, and counts it if it does.
pub type BatchFits<'a> = dyn FnMut(usize) -> bool + 'a;

/// A store from which batches are taken in rounds.
pub trait RoundStore: Send {
    /// Up to `limit` services that have a batch to submit now, ordered by service id, starting after
    /// `after`.
    fn ready_services(
        &self,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceId>>;

    /// Takes the next batches of these services that can be submitted now and fit, at most as many of
    /// each as its share. The batches are durably marked as being with a submitter before they are
    /// returned.
    ///
    /// `fits` is called once for each batch, in the order of `shares`, before any bytes are read.
    fn take_round(&self, shares: &[ServiceShare], fits: &mut BatchFits<'_>) -> BatchResult<Round>;

    /// Gives back batches that were certainly not sent, so that they can be taken again at once.
    fn give_back(&self, batches: &[TakenBatch]) -> BatchResult<()>;
}
