//! Exports the batches that have ended.

use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::events::{BatchEvent, EventStore};
use grid_batch_core::webhooks::{EventReceiver, WebhookStore};
use grid_batch_core::{BatchError, BatchResult, InternalError};
use grid_batch_http::{HttpClient, HttpOptions, HttpRequests, TlsOptions};
use grid_batch_support::{BlockingPool, ErrorChain};
use log::{error, info, warn};
use opentelemetry_otlp::{RetryPolicy, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanExporter as _},
};

use crate::{CollectorOptions, collector::CollectorClient, spans::spans};

/// How many spans are sent in one request, except that those of a batch stay together.
const SPANS: usize = 512;

/// Exports the history of each batch when it has ended, if the trace that it belongs to is recorded.
///
/// It holds nothing: a batch that waits is in the database only, and the caller stores how far it has read.
pub struct TraceExport {
    events: Arc<dyn EventStore>,
    blocking: BlockingPool,
    client: CollectorClient,
    exporter: SpanExporter,
}

impl TraceExport {
    /// Exports the histories of a store to the collector that the environment names.
    pub fn new(
        options: CollectorOptions,
        events: Arc<dyn EventStore>,
        blocking: BlockingPool,
    ) -> Result<Self, InternalError> {
        let http = HttpOptions {
            request_timeout: options.timeout,
            tls: TlsOptions {
                authorities: options.authorities.into_iter().collect(),
                ..TlsOptions::default()
            },
            ..HttpOptions::default()
        };
        let failed = |error| InternalError::from_source("cannot start the export of traces", error);
        let client = HttpClient::new(&http).map_err(failed)?;
        Self::with_client(events, blocking, Arc::new(client))
    }

    /// What exports the histories of a store, if the environment names a collector. What it names wrongly is logged: it
    /// must not keep batches from being sent.
    pub fn start(
        events: Arc<dyn EventStore>,
        webhooks: &dyn WebhookStore,
        blocking: BlockingPool,
    ) -> BatchResult<Option<Self>> {
        let export = match CollectorOptions::of_process() {
            Ok(None) => return Ok(None),
            Ok(Some(options)) => {
                Self::new(options, events, blocking).map_err(|error| ErrorChain(&error).to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        match export {
            Ok(export) => {
                webhooks.add_trace_export()?;
                info!("traces are exported");
                Ok(Some(export))
            }
            Err(error) => {
                error!(error = error.as_str(); "traces are not exported");
                Ok(None)
            }
        }
    }

    /// The same with another client.
    pub fn with_client(
        events: Arc<dyn EventStore>,
        blocking: BlockingPool,
        client: Arc<dyn HttpRequests>,
    ) -> Result<Self, InternalError> {
        let client = CollectorClient::new(client);
        let builder = SpanExporter::builder().with_http().with_http_client(client.clone());
        // Its caller retries, for longer than a process lives.
        let exporter = builder.with_retry_policy(RetryPolicy::disabled()).build();
        let failed = |error| InternalError::from_source("cannot start the export of traces", error);
        let mut exporter = exporter.map_err(failed)?;
        exporter.set_resource(&resource());
        Ok(Self { events, blocking, client, exporter })
    }

    async fn export(&self, events: &[BatchEvent]) -> BatchResult<()> {
        let mut pending = Vec::new();
        for event in events.iter().filter(|event| is_exported(event)) {
            pending.extend(self.spans_of(event).await?);
            if pending.len() >= SPANS {
                self.send(std::mem::take(&mut pending)).await?;
            }
        }
        if pending.is_empty() { Ok(()) } else { self.send(pending).await }
    }

    async fn spans_of(&self, end: &BatchEvent) -> BatchResult<Vec<SpanData>> {
        let (service_id, batch_id) = (end.service_id.clone(), end.batch_id);
        let events = Arc::clone(&self.events);
        let history = self.blocking.ask(move || events.history(&service_id, &batch_id)).await?;
        // Retention may have removed the batch.
        let history = history.unwrap_or_default();
        Ok(end.trace.as_ref().map(|trace| spans(trace, end, &history)).unwrap_or_default())
    }

    async fn send(&self, spans: Vec<SpanData>) -> BatchResult<()> {
        let count = spans.len();
        let Err(error) = self.exporter.export(spans).await else { return Ok(()) };
        match self.client.take_failure() {
            Some(failure) if failure.is_final => {
                warn!(spans = count, error = failure.reason.as_str(); "the collector refuses spans; they are dropped");
                Ok(())
            }
            Some(failure) => Err(BatchError::Unavailable(failure.reason)),
            None => Err(BatchError::Unavailable(error.to_string())),
        }
    }
}

impl EventReceiver for TraceExport {
    fn receive<'a>(&'a self, events: &'a [BatchEvent]) -> BoxFuture<'a, BatchResult<()>> {
        Box::pin(self.export(events))
    }
}

impl fmt::Debug for TraceExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TraceExport")
    }
}

/// Whether the event ends a batch of a trace that is recorded.
fn is_exported(event: &BatchEvent) -> bool {
    event.state.is_terminal() && event.trace.as_ref().is_some_and(|trace| trace.is_sampled())
}

/// What sends the spans. Without a name in the environment it is the name of the program.
fn resource() -> Resource {
    let detected = Resource::builder().build();
    let name = detected.get(&"service.name".into()).map(|name| name.to_string());
    if name.is_some_and(|name| !name.starts_with("unknown_service")) {
        return detected;
    }
    Resource::builder().with_service_name("grid-batch").build()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use grid_batch_core::batches::BatchState;
    use grid_batch_core::events::EventKind;
    use grid_batch_core::mocks::MockEventStore;
    use grid_batch_http::{HttpError, HttpResponse, mocks::MockHttpRequests};
    use grid_batch_support::Jobs;

    use super::*;
    use crate::spans::test_history::{PARENT, history};

    fn ended() -> Vec<BatchEvent> {
        history(&[
            (EventKind::Accepted, BatchState::New),
            (EventKind::Submitted, BatchState::Submitting),
            (EventKind::Answered, BatchState::Pending),
            (EventKind::Status, BatchState::Committed),
        ])
    }

    /// The end of a batch whose history is stored.
    fn end() -> BatchEvent {
        ended().pop().unwrap()
    }

    fn with_trace(parent: Option<&str>) -> BatchEvent {
        BatchEvent { trace: parent.map(|text| text.parse().unwrap()), ..end() }
    }

    fn response(status: u16) -> Result<HttpResponse, HttpError> {
        let body = Ok(b"what the collector says".to_vec());
        Ok(HttpResponse { status, retry_after: None, body })
    }

    /// Exports events to a collector with this answer. Returns the result and the number of requests.
    fn export(
        events: &[BatchEvent],
        answer: fn() -> Result<HttpResponse, HttpError>,
    ) -> (Result<(), String>, usize) {
        let requests = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&requests);
        let mut client = MockHttpRequests::new();
        client.expect_post().returning(move |_, headers, body| {
            counted.fetch_add(1, Relaxed);
            assert!(headers.contains(&("content-type".into(), "application/x-protobuf".into())));
            assert!(!body.is_empty());
            answer()
        });
        let mut store = MockEventStore::new();
        store.expect_history().returning(|_, _| Ok(Some(ended())));
        let jobs = Jobs::start().unwrap();
        let blocking = jobs.blocking().clone();
        let export = TraceExport::with_client(Arc::new(store), blocking, Arc::new(client)).unwrap();
        let exported = jobs.handle().block_on(export.receive(events));
        (exported.map_err(|error| error.to_string()), requests.load(Relaxed))
    }

    #[test]
    fn batches_of_recorded_traces_are_exported_together() {
        let open = ended().swap_remove(2);
        let not_sampled = PARENT.replace("-01", "-00");
        let others = [open, with_trace(None), with_trace(Some(&not_sampled))];
        assert_eq!(export(&others, || response(200)), (Ok(()), 0));
        let all = [&others[..], &[end(), end()]].concat();
        assert_eq!(export(&all, || response(202)), (Ok(()), 1));
    }

    #[test]
    fn many_batches_are_exported_in_several_requests() {
        let all = vec![end(); 300];
        // Each batch has four spans.
        assert_eq!(export(&all, || response(200)), (Ok(()), 3));
    }

    #[test]
    fn failure_names_the_reason_and_the_collector() {
        for (answer, reason) in [
            (
                (|| response(503)) as fn() -> _,
                "HTTP status 503: what the collector says (at the collector http://localhost:4318)",
            ),
            (|| response(401), "HTTP status 401"),
            (|| Err(HttpError::NotSent("connection refused".to_owned())), "connection refused"),
        ] {
            let (exported, requests) = export(&[end()], answer);
            let error = exported.unwrap_err();
            assert!(error.contains(reason), "{error}");
            assert_eq!(requests, 1);
        }
    }

    #[test]
    fn spans_that_the_collector_can_never_accept_are_dropped() {
        assert_eq!(export(&[end()], || response(400)), (Ok(()), 1));
    }
}
