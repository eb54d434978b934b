use std::sync::Arc;

use grid_batch_core::BatchResult;

use crate::{
    http::ApiError,
    state::{ApiState, StoreAccess},
};

/// A store as requests use it: outside of the threads that serve connections, and a limited number at once.
pub(crate) struct SharedStore<S: ?Sized> {
    pub(crate) store: Arc<S>,
    pub(super) reads: StoreAccess,
    pub(crate) writes: StoreAccess,
}

impl<S: ?Sized + Send + Sync + 'static> SharedStore<S> {
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&S) -> BatchResult<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let store = Arc::clone(&self.store);
        self.reads.run(move || read(&*store).map_err(ApiError::read_failed)).await
    }

    pub(crate) async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&S) -> BatchResult<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let store = Arc::clone(&self.store);
        self.writes.run(move || write(&*store).map_err(ApiError::write_failed)).await
    }
}

/// What the handlers of an area need that has one store.
pub(crate) struct StoreContext<S: ?Sized> {
    pub(crate) api: Arc<ApiState>,
    pub(crate) store: SharedStore<S>,
}

impl<S: ?Sized> StoreContext<S> {
    /// At most this many requests write at once.
    pub(crate) fn new(api: &Arc<ApiState>, store: Arc<S>, writes: usize) -> Self {
        Self { api: Arc::clone(api), store: api.store(store, writes) }
    }
}
