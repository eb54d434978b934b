use grid_batch_core::NewBatch;
use tokio::sync::{
    mpsc::{self, OwnedPermit, error::TrySendError},
    oneshot,
};

use crate::http::{ApiError, MemoryReservation};

/// The queue of the writer thread. Requests that wait in it at the same time share a commit.
#[derive(Debug, Clone)]
pub(crate) struct WriteQueue(mpsc::Sender<WriteRequest>);

/// The batches of one HTTP request. Either all of them are stored, or none.
#[derive(Debug)]
pub(crate) struct WriteRequest {
    pub(crate) batches: Vec<NewBatch>,
    /// The memory that the batches take, reserved until the request is answered.
    pub(crate) _reservation: MemoryReservation,
    /// Receives the result after the commit.
    pub(crate) answer: oneshot::Sender<Result<(), ApiError>>,
}

/// A reserved slot of the queue. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct WriteSlot(OwnedPermit<WriteRequest>);

impl WriteQueue {
    /// A queue for up to `limit` requests, and the end that the writer reads.
    pub(crate) fn new(limit: usize) -> (Self, mpsc::Receiver<WriteRequest>) {
        let (sender, receiver) = mpsc::channel(limit);
        (Self(sender), receiver)
    }

    /// Reserves a slot, if one is free.
    pub(crate) fn reserve_slot(&self) -> Result<WriteSlot, ApiError> {
        self.0.clone().try_reserve_owned().map(WriteSlot).map_err(|error| match error {
            TrySendError::Full(_) => ApiError::Overloaded,
            TrySendError::Closed(_) => ApiError::BatchesNotStored,
        })
    }
}

impl WriteSlot {
    /// Stores batches and waits for the commit.
    ///
    /// Dropping this future does not cancel the write.
    pub(crate) async fn store(
        self,
        batches: Vec<NewBatch>,
        reservation: MemoryReservation,
    ) -> Result<(), ApiError> {
        let (answer, answered) = oneshot::channel();
        self.0.send(WriteRequest { batches, _reservation: reservation, answer });
        answered.await.unwrap_or(Err(ApiError::BatchesNotStored))
    }
}
