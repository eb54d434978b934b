use std::sync::Arc;

use grid_batch_core::events::{EventFilter, EventPage, EventPosition, EventReadError, EventStore};

use super::{PATH, wake_up::EventWakeUp};
use crate::{events::EventRequestError, http::ApiError, state::ApiState};

/// What the feed needs.
pub(crate) struct EventContext {
    pub(super) api: Arc<ApiState>,
    pub(super) store: Arc<dyn EventStore>,
    pub(super) wake_up: EventWakeUp,
}

impl EventContext {
    pub(crate) fn new(api: Arc<ApiState>, store: Arc<dyn EventStore>) -> Self {
        let wake_up = EventWakeUp::new();
        store.on_events(wake_up.listener());
        Self { api, store, wake_up }
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
            EventRequestError::EventsRemoved { link: format!("{PATH}?after={oldest}") }.into()
        }
        error => EventRequestError::InvalidEventCursor(error.to_string()).into(),
    }
}
