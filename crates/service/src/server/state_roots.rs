//! The job that pauses services whose nodes have different states.

use std::{sync::Arc, time::Duration};

use grid_batch_claims::RecordedStream;
use grid_batch_core::{InternalError, Ledger, Recorded, RecordedSubscriber, ServiceId};
use grid_batch_store::{ClaimStore, StoreError};
use grid_batch_support::{ErrorChain, RuntimeThread, Shutdown, shut_down_runtime};
use log::{info, warn};
use tokio::{
    runtime::{Builder, Runtime},
    select,
    task::spawn_blocking,
    time::sleep,
};

/// How long to wait between two comparisons.
const INTERVAL: Duration = Duration::from_secs(1);

/// The thread that compares the states. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct RunningStateRootWatch {
    shutdown: Shutdown,
    thread: Option<RuntimeThread<()>>,
}

impl RunningStateRootWatch {
    /// Compares the states of services as long as they may differ.
    pub(super) fn start(
        ledger: Arc<dyn Ledger>,
        claims: ClaimStore,
        stream: RecordedStream,
    ) -> Result<Self, InternalError> {
        let shutdown = Shutdown::new();
        let requested = shutdown.clone();
        let watch = async move {
            loop {
                match compare(&*ledger, &claims).await {
                    Ok(services) if services.is_empty() => {}
                    Ok(services) => stream.recorded(Recorded::Resumed(&services)),
                    Err(error) => warn!(error:% = ErrorChain(&error);
                        "cannot record whether the state roots of nodes differ"),
                }
                sleep(INTERVAL).await;
            }
        };
        let runtime = || Builder::new_current_thread().enable_all().build();
        let thread = RuntimeThread::start("state-roots", runtime, move |runtime: Runtime| {
            runtime.block_on(async {
                select! {
                    () = requested.requested() => {}
                    () = watch => {}
                }
            });
            shut_down_runtime(runtime);
        })?;
        Ok(Self { shutdown, thread: Some(thread) })
    }
}

/// Compares the states and records what has changed. Returns the services that go on.
async fn compare(ledger: &dyn Ledger, claims: &ClaimStore) -> Result<Vec<ServiceId>, StoreError> {
    let store = claims.clone();
    let paused = blocking(move || store.services_with_different_states()).await?;
    let mut compared = ledger.compare_states(&paused).await;
    compared.retain(|(service, differ)| paused.contains(service) != *differ);
    if compared.is_empty() {
        return Ok(Vec::new());
    }
    let store = claims.clone();
    blocking(move || record(&store, compared)).await
}

fn record(
    claims: &ClaimStore,
    compared: Vec<(ServiceId, bool)>,
) -> Result<Vec<ServiceId>, StoreError> {
    let mut resumed = Vec::new();
    for (service, differ) in compared {
        let changed = claims.set_states_differ(&service, differ)?;
        match differ {
            true if changed => {
                warn!(service:%; "the service is paused until the state roots agree")
            }
            false if changed => {
                info!(service:%; "the service goes on: the state roots of its nodes agree");
                resumed.push(service);
            }
            _ => {}
        }
    }
    Ok(resumed)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let ended = spawn_blocking(work).await;
    ended.unwrap_or_else(|error| Err(StoreError::Unavailable { source: error.into() }))
}

impl Drop for RunningStateRootWatch {
    fn drop(&mut self) {
        self.shutdown.request();
        if let Some(thread) = self.thread.take() {
            // The panic hook has printed a panic already.
            let _ = thread.join();
        }
    }
}
