//! Watches the webhooks, and delivers to each in its own task.

use std::{collections::HashSet, fmt, sync::Arc, time::Duration};

use grid_batch_core::events::EventStore;
use grid_batch_core::webhooks::{DueWebhook, EventReceiver, WebhookId, WebhookStore};
use grid_batch_core::{BatchResult, InternalError, Timestamp};
use grid_batch_http::{HttpClient, HttpOptions, HttpRequests};
use grid_batch_support::{BlockingPool, Job, Jobs, Shutdown, catch_panic_async};
use log::{error, warn};
use tokio::{
    select,
    sync::{Notify, Semaphore},
    task::JoinSet,
    time::sleep,
};

use crate::{DeliveryOptions, delivery, scanned::Scanned};

/// How many tasks use the store at once, so that webhooks leave connections and threads to others.
const STORE_TASKS: usize = 1;
/// The shortest time between two checks of the webhooks, and between two deliveries to each. Events that occur within
/// it are delivered together.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_OF_EACH: Duration = Duration::from_millis(5);

/// Only the status of a response matters, so its body is limited.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// The stores with which a deliverer works. Usually all are the same store.
#[derive(Clone)]
pub struct DeliveryParts {
    /// The feed.
    pub events: Arc<dyn EventStore>,
    /// The webhooks, and what was delivered to them.
    pub webhooks: Arc<dyn WebhookStore>,
    /// What exports traces, if this instance does so.
    pub traces: Option<Arc<dyn EventReceiver>>,
}

/// A job that delivers the events of all webhooks.
pub struct Deliverer(Arc<Parts>);

/// What the deliveries to all webhooks share.
pub(crate) struct Parts {
    stores: DeliveryParts,
    pub(crate) options: DeliveryOptions,
    pub(crate) client: Arc<dyn HttpRequests>,
    pub(crate) shutdown: Shutdown,
    pub(crate) scanned: Scanned,
    store_tasks: Semaphore,
    blocking: BlockingPool,
}

impl Deliverer {
    /// Starts to deliver.
    pub fn start(
        jobs: &Jobs,
        stores: DeliveryParts,
        options: DeliveryOptions,
    ) -> Result<Job, InternalError> {
        let failed = |error| InternalError::from_source("cannot start the webhooks", error);
        let http = HttpOptions {
            connect_timeout: options.request_timeout.min(HttpOptions::default().connect_timeout),
            request_timeout: options.request_timeout,
            max_response_bytes: MAX_RESPONSE_BYTES,
            headers: options.headers.clone(),
            tls: options.tls.clone(),
            ..HttpOptions::default()
        };
        let allowed = options.allowed.clone();
        let allows = move |address| allowed.allows(address);
        let client = HttpClient::with_allowed_addresses(&http, allows).map_err(failed)?;
        Ok(Self::start_with_client(jobs, stores, options, Arc::new(client)))
    }

    /// The same with another client, which must refuse the addresses that the options do not allow.
    pub fn start_with_client(
        jobs: &Jobs,
        stores: DeliveryParts,
        options: DeliveryOptions,
        client: Arc<dyn HttpRequests>,
    ) -> Job {
        let wake = Arc::new(Notify::new());
        let woken = Arc::clone(&wake);
        stores.events.on_events(Arc::new(move || woken.notify_one()));
        let (scanned, store_tasks) = (Scanned::default(), Semaphore::new(STORE_TASKS));
        let shutdown = Shutdown::new();
        let deliverer = Self(Arc::new(Parts {
            stores,
            options,
            client,
            shutdown: shutdown.clone(),
            scanned,
            store_tasks,
            blocking: jobs.blocking().clone(),
        }));
        jobs.spawn_until("webhooks", shutdown, async move { deliverer.run(&wake).await })
    }

    /// Delivers until the shutdown is requested. A request in flight is then dropped, and its event is sent again
    /// later.
    async fn run(&self, wake: &Notify) {
        let parts = &self.0;
        let mut tasks: JoinSet<WebhookId> = JoinSet::new();
        let mut busy: HashSet<WebhookId> = HashSet::new();
        loop {
            let due = parts.store(|stores| stores.webhooks.due_webhooks()).await;
            let mut due = due.unwrap_or_else(|error| {
                warn!(error:%; "cannot read the webhooks");
                Vec::new()
            });
            due.retain(|webhook| parts.stores.traces.is_some() || !webhook.is_trace_export());
            let count = u32::try_from(due.len()).unwrap_or(u32::MAX);
            for webhook in due {
                if busy.insert(webhook.id) {
                    tasks.spawn(deliver(Arc::clone(parts), webhook));
                }
            }
            select! {
                () = parts.shutdown.requested() => break,
                () = parts.wait(wake, count) => {}
            }
            while let Some(ended) = tasks.try_join_next() {
                if let Ok(id) = ended {
                    busy.remove(&id);
                }
            }
        }
        while tasks.join_next().await.is_some() {}
    }
}

impl fmt::Debug for Deliverer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deliverer")
    }
}

impl Parts {
    /// Waits until the webhooks should be checked again. Commits matter only if a webhook waits for them.
    async fn wait(&self, wake: &Notify, count: u32) {
        if count == 0 {
            return sleep(self.options.poll_interval).await;
        }
        sleep(PAUSE.max(PAUSE_OF_EACH * count).min(self.options.poll_interval)).await;
        select! {
            () = wake.notified() => {}
            () = sleep(self.options.poll_interval) => {}
        }
    }

    /// Uses the stores on a thread that may block.
    pub(crate) async fn store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&DeliveryParts) -> BatchResult<T> + Send + 'static,
    ) -> BatchResult<T> {
        // The semaphore is never closed.
        let _task = self.store_tasks.acquire().await;
        let stores = self.stores.clone();
        self.blocking.ask(move || work(&stores)).await
    }

    /// What gets the events of the webhook in the place of a URL.
    pub(crate) fn receiver(&self, webhook: &DueWebhook) -> Option<&dyn EventReceiver> {
        self.stores.traces.as_deref().filter(|_| webhook.is_trace_export())
    }

    /// The present time, for requests and stored times.
    pub(crate) fn time(&self) -> Timestamp {
        self.stores.webhooks.now()
    }
}

async fn deliver(parts: Arc<Parts>, webhook: DueWebhook) -> WebhookId {
    let id = webhook.id;
    match catch_panic_async(delivery::deliver(&parts, webhook)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(webhook:% = id, error:%; "cannot deliver the events of a webhook"),
        Err(panic) => error!(webhook:% = id, panic:%; "the delivery to a webhook panicked"),
    }
    id
}
