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
