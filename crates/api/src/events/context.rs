use std::sync::Arc;

use grid_batch_core::{EventFilter, EventPage, EventPosition, EventReadError, EventStore};
use tokio::sync::Semaphore;

use super::{PATH, wake::Wake};
use crate::{http::ApiError, state::ApiState};

/// The most requests that wait for events at once, of pages and of streams.
const LISTENERS: usize = 64;

/// What the feed needs.
pub(crate) struct EventContext {
    pub(super) api: Arc<ApiState>,
    pub(super) store: Arc<dyn EventStore>,
    pub(super) wake: Wake,
    pub(super) listeners: Arc<Semaphore>,
}

impl EventContext {
    pub(crate) fn new(api: Arc<ApiState>, store: Arc<dyn EventStore>) -> Self {
        let wake = Wake::new();
        store.on_events(wake.listener());
        Self { api, store, wake, listeners: Arc::new(Semaphore::new(LISTENERS)) }
    }

    /// Reads a page.
    pub(super) async fn read(
        &self,
        from: EventPosition,
        filter: EventFilter,
        limit: usize,
    ) -> Result<EventPage, ApiError> {
        let store = Arc::clone(&self.store);
        let read = move || match store.events(&from, &filter, limit) {
            Ok(Ok(page)) => Ok(page),
            Ok(Err(error)) => Err(refused(error)),
            Err(error) => Err(ApiError::read_failed(error)),
        };
        self.api.reads.run(read).await
    }
}

fn refused(error: EventReadError) -> ApiError {
    match error {
        EventReadError::Gone { oldest } => {
            ApiError::EventsRemoved { link: format!("{PATH}?after={oldest}") }
        }
        error => ApiError::InvalidEventCursor(error.to_string()),
    }
}
