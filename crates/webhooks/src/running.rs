use std::{fmt, sync::Arc};

use grid_batch_core::{EventStore, InternalError, WebhookStore};
use grid_batch_http::{HttpClient, HttpOptions};
use grid_batch_support::{RuntimeThread, Shutdown, shut_down_runtime};
use tokio::{runtime::Builder, sync::Notify};

use crate::{DeliveryOptions, ShutdownHandle, deliverer::Deliverer};

/// What a receiver answers matters only by its status.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// What a deliverer works with. Usually all are the same store.
#[derive(Clone)]
pub struct DeliveryParts {
    /// The feed.
    pub events: Arc<dyn EventStore>,
    /// The webhooks, and what was delivered to them.
    pub webhooks: Arc<dyn WebhookStore>,
}

/// Delivers events, on a thread of its own, until it is shut down. Dropping it starts the shutdown and does not
/// wait for it.
pub struct RunningDeliverer {
    shutdown: Shutdown,
    thread: Option<RuntimeThread<()>>,
}

impl RunningDeliverer {
    /// Starts the thread.
    pub fn start(parts: DeliveryParts, options: DeliveryOptions) -> Result<Self, InternalError> {
        let failed = |error| InternalError::from_source("cannot start the webhooks", error);
        let http = HttpOptions {
            connect_timeout: options.request_timeout.min(HttpOptions::default().connect_timeout),
            request_timeout: options.request_timeout,
            max_response_bytes: MAX_RESPONSE_BYTES,
            ..HttpOptions::default()
        };
        let allowed = options.allowed.clone();
        let client = HttpClient::new(&http)
            .map_err(failed)?
            .with_allowed_addresses(move |address| allowed.allows(address));
        let wake = Arc::new(Notify::new());
        let woken = Arc::clone(&wake);
        parts.events.on_events(Arc::new(move || woken.notify_one()));
        let shutdown = Shutdown::new();
        let stopped = shutdown.clone();
        let runtime = || Builder::new_current_thread().enable_all().build();
        let thread = RuntimeThread::start("webhooks", runtime, move |runtime| {
            let deliverer = Deliverer::new(parts, options, client, stopped);
            runtime.block_on(deliverer.run(&wake));
            shut_down_runtime(runtime);
        })?;
        Ok(Self { shutdown, thread: Some(thread) })
    }
}

impl ShutdownHandle for RunningDeliverer {
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.shutdown.request();
        Ok(())
    }

    fn wait_for_shutdown(mut self) -> Result<(), InternalError> {
        self.signal_shutdown()?;
        self.thread.take().map_or(Ok(()), RuntimeThread::join)
    }
}

impl Drop for RunningDeliverer {
    fn drop(&mut self) {
        self.shutdown.request();
    }
}

impl fmt::Debug for RunningDeliverer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunningDeliverer")
    }
}
