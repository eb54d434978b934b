use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::{ApiError, RequestError};

/// Limits the memory that the bodies of all requests take together.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBudget(Arc<Semaphore>);

/// A part of the budget. Dropping it returns the memory to the budget.
#[derive(Debug)]
pub(crate) struct MemoryReservation(OwnedSemaphorePermit);

/// Memory is counted in KiB, because a semaphore grants at most `u32::MAX` permits at once.
const UNIT: usize = 1024;

impl MemoryBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.div_ceil(UNIT))))
    }

    /// An empty reservation.
    pub(crate) fn reserve(&self) -> Result<MemoryReservation, ApiError> {
        let permit = Arc::clone(&self.0).try_acquire_many_owned(0);
        Ok(permit.map(MemoryReservation).map_err(|_| RequestError::Overloaded)?)
    }
}

impl MemoryReservation {
    /// Extends the reservation to this number of bytes, if the budget allows it.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let missing = bytes.div_ceil(UNIT).saturating_sub(self.0.num_permits());
        let missing = u32::try_from(missing).map_err(|_| RequestError::Overloaded)?;
        let budget = Arc::clone(self.0.semaphore());
        let permit =
            budget.try_acquire_many_owned(missing).map_err(|_| RequestError::Overloaded)?;
        self.0.merge(permit);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservation_grows_to_the_budget_and_is_returned() {
        let budget = MemoryBudget::new(4 * UNIT);
        let [mut first, mut second] = [budget.reserve().unwrap(), budget.reserve().unwrap()];
        assert_eq!(first.grow_to(2 * UNIT + 1), Ok(()));
        assert_eq!(first.grow_to(3 * UNIT), Ok(()));
        assert_eq!(second.grow_to(UNIT + 1), Err(RequestError::Overloaded.into()));
        assert_eq!(second.grow_to(UNIT), Ok(()));
        assert_eq!(first.grow_to(3 * UNIT + 1), Err(RequestError::Overloaded.into()));
        drop(first);
        assert_eq!(second.grow_to(4 * UNIT), Ok(()));
    }
}
