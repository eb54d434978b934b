use std::sync::Arc;

use futures_core::future::BoxFuture;
use futures_util::StreamExt;
use grid_batch_core::{BatchResult, LedgerEventStream, LedgerEvents};

use super::LedgerCheck;

/// Has the nodes asked again when an event stream ends, because then a node may have been replaced.
pub(in crate::server) struct CheckedEvents {
    events: Arc<dyn LedgerEvents>,
    check: LedgerCheck,
}

impl CheckedEvents {
    pub(in crate::server) fn new(events: Arc<dyn LedgerEvents>, check: LedgerCheck) -> Self {
        Self { events, check }
    }
}

impl LedgerEvents for CheckedEvents {
    fn subscribe<'a>(
        &'a self,
        service_id: &'a str,
    ) -> BoxFuture<'a, BatchResult<LedgerEventStream>> {
        Box::pin(async move {
            let events = self.events.subscribe(service_id).await?;
            let check = self.check.clone();
            // An error is always the last item of a stream.
            let events = events.inspect(move |event| {
                if event.is_err() {
                    check.any_connection_failed();
                }
            });
            Ok(events.boxed())
        })
    }

    fn node(&self, service_id: &str) -> Option<String> {
        self.events.node(service_id)
    }
}
