use tokio::sync::{
    mpsc::{self, OwnedPermit, error::TrySendError},
    oneshot,
};

use crate::http::{ApiError, RequestError};

/// The queue of a writer thread: it stores items of the type `I`, and answers each with an `A`.
/// Requests that wait in it at the same time share a commit.
#[derive(Debug)]
pub(crate) struct WriteQueue<I, A>(mpsc::Sender<WriteRequest<I, A>>);

/// What one HTTP request stores. Either all of it is stored, or nothing.
#[derive(Debug)]
pub(crate) struct WriteRequest<I, A> {
    pub(crate) item: I,
    /// Receives the answer after the commit. Dropping it says that the item may not have been stored.
    pub(crate) answer: oneshot::Sender<A>,
}

/// A reserved slot of the queue. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct WriteSlot<I, A>(OwnedPermit<WriteRequest<I, A>>);

impl<I, A> WriteQueue<I, A> {
    /// A queue for up to `limit` requests, and the end that the writer reads.
    pub(crate) fn new(limit: usize) -> (Self, mpsc::Receiver<WriteRequest<I, A>>) {
        let (sender, receiver) = mpsc::channel(limit);
        (Self(sender), receiver)
    }

    /// Reserves a slot, if one is free.
    pub(crate) fn reserve_slot(&self) -> Result<WriteSlot<I, A>, ApiError> {
        self.0.clone().try_reserve_owned().map(WriteSlot).map_err(|error| match error {
            TrySendError::Full(_) => RequestError::Overloaded.into(),
            TrySendError::Closed(_) => ApiError::write_interrupted(),
        })
    }
}

impl<I, A> WriteSlot<I, A> {
    /// Stores an item and waits for the commit. `None`: the item may not have been stored.
    ///
    /// Dropping this future does not cancel the write.
    pub(crate) async fn store(self, item: I) -> Option<A> {
        let (answer, answered) = oneshot::channel();
        self.0.send(WriteRequest { item, answer });
        answered.await.ok()
    }
}
