use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// The memory that bodies may take, all together.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Semaphore>);

/// A part of the room, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Share(OwnedSemaphorePermit);

/// What room is counted in: a semaphore gives no more than `u32::MAX` at once.
const UNIT: usize = 1024;

impl Room {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.div_ceil(UNIT))))
    }

    /// A share of nothing yet.
    pub(crate) fn share(&self) -> Result<Share, ApiError> {
        Arc::clone(&self.0).try_acquire_many_owned(0).map(Share).map_err(|_| ApiError::Full)
    }
}

impl Share {
    /// Makes it large enough for so many bytes, if there is room.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let missing = bytes.div_ceil(UNIT).saturating_sub(self.0.num_permits());
        let missing = u32::try_from(missing).map_err(|_| ApiError::Full)?;
        let room = Arc::clone(self.0.semaphore());
        let more = room.try_acquire_many_owned(missing).map_err(|_| ApiError::Full)?;
        self.0.merge(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_grows_until_the_room_is_full_and_is_given_back() {
        let room = Room::new(4 * UNIT);
        let [mut one, mut other] = [room.share().unwrap(), room.share().unwrap()];
        assert_eq!(one.grow_to(2 * UNIT + 1), Ok(()));
        assert_eq!(one.grow_to(3 * UNIT), Ok(()));
        assert_eq!(other.grow_to(UNIT + 1), Err(ApiError::Full));
        assert_eq!(other.grow_to(UNIT), Ok(()));
        assert_eq!(one.grow_to(3 * UNIT + 1), Err(ApiError::Full));
        drop(one);
        assert_eq!(other.grow_to(4 * UNIT), Ok(()));
    }
}
