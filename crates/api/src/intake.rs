use grid_batch_core::NewBatch;
use tokio::sync::{
    mpsc::{OwnedPermit, Sender, error::TrySendError},
    oneshot,
};

use crate::{error::ApiError, room::Share};

/// The way to the one thread that writes: requests that wait there together share a commit.
#[derive(Debug, Clone)]
pub(crate) struct Intake {
    queue: Sender<Parcel>,
}

/// The batches of one request, all to be stored or none.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) batches: Vec<NewBatch>,
    /// The room that they take, held until they are answered.
    pub(crate) _share: Share,
    /// Told when they are safe, or why not.
    pub(crate) answer: oneshot::Sender<Result<(), ApiError>>,
}

/// A place in the queue, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place(OwnedPermit<Parcel>);

impl Intake {
    pub(crate) fn new(queue: Sender<Parcel>) -> Self {
        Self { queue }
    }

    /// A place in the queue, if one is free. It is taken before batches are checked: work that could
    /// not be kept would be in vain.
    pub(crate) fn place(&self) -> Result<Place, ApiError> {
        self.queue.clone().try_reserve_owned().map(Place).map_err(|error| match error {
            TrySendError::Full(_) => ApiError::Full,
            TrySendError::Closed(_) => ApiError::NotStored,
        })
    }
}

impl Place {
    /// Stores batches, and is answered when they are safe.
    ///
    /// Whoever stops to wait takes nothing back.
    pub(crate) async fn store(self, batches: Vec<NewBatch>, share: Share) -> Result<(), ApiError> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Parcel { batches, _share: share, answer });
        answered.await.unwrap_or(Err(ApiError::NotStored))
    }
}
