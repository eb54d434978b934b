use std::{future::pending, sync::Arc, time::Duration};

use futures_util::StreamExt;
use grid_batch_core::ledger::{Ledger, LedgerEventStream};
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_nodes::{NodePool, StatusUrlResolver};
use grid_batch_support::{Delays, catch_panic_async, rng};
use log::{debug, info, warn};
use tokio::{
    select,
    time::{Instant, sleep, timeout},
};

use crate::{
    EventFollower, EventOptions, PollTrigger, events::follower::FollowedService,
    evidence_search::is_outage,
};

/// Listens to the events of one service until it is dropped.
pub(crate) struct ServiceEventListener {
    pub(crate) events: Arc<dyn Ledger>,
    pub(crate) service: FollowedService,
    pub(crate) follower: EventFollower,
    pub(crate) trigger: PollTrigger,
    pub(crate) options: EventOptions,
    pub(crate) nodes: NodePool,
}

/// A node that does not answer is tried again this soon, so that batches continue when it is back.
const LONGEST_OUTAGE_PAUSE: Duration = Duration::from_secs(2);

/// Why the events of a stream are no longer relayed.
enum StreamEnd {
    Lost(BatchError),
    /// It was silent and is to be connected again.
    Silent,
}

impl ServiceEventListener {
    pub(crate) async fn run(self) {
        let service = self.service.service_id.as_str();
        let mut delays = Delays::new(self.options.reconnect_backoff, rng(self.seed()));
        let mut silent_delays =
            Delays::new(self.options.silent_reconnect_backoff, rng(self.seed()));
        let mut failures: u64 = 0;
        loop {
            let error = match self.connect().await {
                Ok(stream) => {
                    if failures > 0 {
                        info!(service = service, failures = failures; "event stream connected again");
                        failures = 0;
                    }
                    let connected_at = Instant::now();
                    let end = self.relay(stream, &mut silent_delays).await;
                    if connected_at.elapsed() >= self.options.stable_after {
                        delays.reset();
                    }
                    match end {
                        StreamEnd::Lost(error) => {
                            // The node may have been replaced.
                            self.nodes
                                .require_new_confirmation(&self.nodes.status_urls(service, ""));
                            error
                        }
                        StreamEnd::Silent => {
                            debug!(service = service; "connecting a silent event stream again");
                            continue;
                        }
                    }
                }
                Err(error) => error,
            };
            if failures == 0 {
                warn!(service = service, error:% = error; "event stream lost; polling continues");
            }
            failures += 1;
            let delay = delays.next_delay();
            sleep(if is_outage(&error) { delay.min(LONGEST_OUTAGE_PAUSE) } else { delay }).await;
        }
    }

    async fn connect(&self) -> BatchResult<LedgerEventStream> {
        let limit = self.options.connect_limit;
        let timed_out = |_| Err(BatchError::Unavailable(format!("no connection within {limit:?}")));
        let connecting = async {
            let service = self.service.service_id.as_str();
            timeout(limit, self.events.events(service)).await.unwrap_or_else(timed_out)
        };
        catch_panic_async(connecting).await.unwrap_or_else(|panic| Err(panic.into()))
    }

    /// Triggers a poll for each event until the stream breaks or must be connected again.
    async fn relay(&self, stream: LedgerEventStream, silent_delays: &mut Delays) -> StreamEnd {
        self.follower.connected(&self.service, self.events.event_node(&self.service.service_id));
        // Events before the connection were missed.
        self.trigger.trigger(&self.service.service_id);
        let end = select! {
            error = self.relay_until_broken(stream) => StreamEnd::Lost(error),
            () = self.stays_silent(silent_delays) => StreamEnd::Silent,
        };
        self.follower.disconnected(&self.service);
        end
    }

    async fn relay_until_broken(&self, mut stream: LedgerEventStream) -> BatchError {
        let relaying = async {
            while let Some(event) = stream.next().await {
                let event = event?;
                self.follower.event(&self.service);
                if event.is_repeated {
                    self.follower.repeated();
                }
                self.trigger.trigger(&self.service.service_id);
            }
            Ok(())
        };
        let end = catch_panic_async(relaying).await.unwrap_or_else(|panic| Err(panic.into()));
        end.err().unwrap_or_else(|| BatchError::Unavailable("the stream ended".to_owned()))
    }

    /// Waits until the stream has been silent for the next of these delays.
    async fn stays_silent(&self, delays: &mut Delays) {
        let Some(mut silence) = self.follower.watch_silence(&self.service) else {
            return pending().await;
        };
        loop {
            // An error means that the service was evicted, which ends this task.
            if silence.wait_for(|is_silent| *is_silent).await.is_err() {
                return pending().await;
            }
            let ends = silence.wait_for(|is_silent| !is_silent);
            if timeout(delays.next_delay(), ends).await.is_err() {
                return;
            }
            delays.reset();
        }
    }

    /// A different seed for each service, so that streams that break together do not reconnect
    /// together.
    fn seed(&self) -> Option<u64> {
        self.options.seed.map(|seed| seed.wrapping_add(self.service.number()))
    }
}
