use std::sync::Arc;

use futures_util::StreamExt;
use grid_batch_core::{BatchError, BatchResult, LedgerEventStream, LedgerEvents};
use log::{info, warn};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    EventFollower, EventOptions, PollTrigger, backoff::rng, events::followed::Following,
    panics::catch_future,
};

/// Listens to one service, for as long as it is not dropped.
pub(crate) struct Listener {
    pub(crate) events: Arc<dyn LedgerEvents>,
    pub(crate) following: Following,
    pub(crate) follower: EventFollower,
    pub(crate) trigger: PollTrigger,
    pub(crate) options: EventOptions,
}

impl Listener {
    pub(crate) async fn run(self) {
        let service = self.following.service_id.as_str();
        let mut delays = self.options.reconnect_backoff.delays(rng(self.seed()));
        let mut failures: u64 = 0;
        loop {
            let error = match self.connect().await {
                Ok(stream) => {
                    if failures > 0 {
                        info!(service = service, failures = failures; "events arrive again");
                        failures = 0;
                    }
                    let begun = Instant::now();
                    let error = self.relay(stream).await;
                    if begun.elapsed() >= self.options.steady_after {
                        delays.reset();
                    }
                    error
                }
                Err(error) => error,
            };
            if failures == 0 {
                warn!(service = service, error:% = error; "no events arrive; polling goes on");
            }
            failures += 1;
            sleep(delays.after_failure()).await;
        }
    }

    async fn connect(&self) -> BatchResult<LedgerEventStream> {
        let limit = self.options.connect_limit;
        let late = |_| Err(BatchError::Unavailable(format!("no connection in {limit:?}")));
        let subscribing = async {
            let service = self.following.service_id.as_str();
            timeout(limit, self.events.subscribe(service)).await.unwrap_or_else(late)
        };
        catch_future(subscribing).await.unwrap_or_else(|panic| Err(panic.into()))
    }

    /// Triggers polls until the stream breaks, and says why it did.
    async fn relay(&self, mut stream: LedgerEventStream) -> BatchError {
        self.follower.set_live(&self.following, true);
        // What happened while nobody listened was missed.
        self.trigger.trigger(&self.following.service_id);
        let relaying = async {
            while let Some(event) = stream.next().await {
                event?;
                self.trigger.trigger(&self.following.service_id);
            }
            Ok(())
        };
        let end = catch_future(relaying).await.unwrap_or_else(|panic| Err(panic.into()));
        self.follower.set_live(&self.following, false);
        end.err().unwrap_or_else(|| BatchError::Unavailable("the stream ended".to_owned()))
    }

    /// One for each service: those that broke together should not come back together.
    fn seed(&self) -> Option<u64> {
        let salt = self.following.number();
        self.options.seed.map(|seed| seed.wrapping_add(salt))
    }
}
