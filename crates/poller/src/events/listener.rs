use std::sync::Arc;

use futures_util::StreamExt;
use grid_batch_core::{BatchError, BatchResult, LedgerEventStream, LedgerEvents};
use grid_batch_support::{catch_panic_async, rng};
use log::{info, warn};
use tokio::time::{Instant, sleep, timeout};

use crate::{EventFollower, EventOptions, PollTrigger, events::follower::FollowedService};

/// Listens to the events of one service until it is dropped.
pub(crate) struct EventListener {
    pub(crate) events: Arc<dyn LedgerEvents>,
    pub(crate) service: FollowedService,
    pub(crate) follower: EventFollower,
    pub(crate) trigger: PollTrigger,
    pub(crate) options: EventOptions,
}

impl EventListener {
    pub(crate) async fn run(self) {
        let service = self.service.service_id.as_str();
        let mut delays = self.options.reconnect_backoff.delays(rng(self.seed()));
        let mut failures: u64 = 0;
        loop {
            let error = match self.connect().await {
                Ok(stream) => {
                    if failures > 0 {
                        info!(service = service, failures = failures; "event stream connected again");
                        failures = 0;
                    }
                    let connected_at = Instant::now();
                    let error = self.relay(stream).await;
                    if connected_at.elapsed() >= self.options.stable_after {
                        delays.reset();
                    }
                    error
                }
                Err(error) => error,
            };
            if failures == 0 {
                warn!(service = service, error:% = error; "event stream lost; polling continues");
            }
            failures += 1;
            sleep(delays.next_delay()).await;
        }
    }

    async fn connect(&self) -> BatchResult<LedgerEventStream> {
        let limit = self.options.connect_limit;
        let timed_out = |_| Err(BatchError::Unavailable(format!("no connection within {limit:?}")));
        let connecting = async {
            let service = self.service.service_id.as_str();
            timeout(limit, self.events.subscribe(service)).await.unwrap_or_else(timed_out)
        };
        catch_panic_async(connecting).await.unwrap_or_else(|panic| Err(panic.into()))
    }

    /// Triggers a poll for each event until the stream breaks, and returns the reason.
    async fn relay(&self, mut stream: LedgerEventStream) -> BatchError {
        self.follower.set_live(&self.service, true);
        // Events before the connection were missed.
        self.trigger.trigger(&self.service.service_id);
        let relaying = async {
            while let Some(event) = stream.next().await {
                event?;
                self.trigger.trigger(&self.service.service_id);
            }
            Ok(())
        };
        let end = catch_panic_async(relaying).await.unwrap_or_else(|panic| Err(panic.into()));
        self.follower.set_live(&self.service, false);
        end.err().unwrap_or_else(|| BatchError::Unavailable("the stream ended".to_owned()))
    }

    /// A different seed for each service, so that streams that break together do not reconnect
    /// together.
    fn seed(&self) -> Option<u64> {
        self.options.seed.map(|seed| seed.wrapping_add(self.service.number()))
    }
}
