use grid_batch_core::BatchError;
use grid_batch_support::Delays;
use log::{info, warn};
use tokio::time::Instant;

use crate::instant::after;

/// Whether the store works, and how long to wait after a failure.
#[derive(Debug)]
pub(crate) struct StoreHealth {
    delays: Delays,
    failures: u64,
    retry_at: Option<Instant>,
}

impl StoreHealth {
    pub(crate) fn new(delays: Delays) -> Self {
        Self { delays, failures: 0, retry_at: None }
    }

    pub(crate) fn failed(&mut self, error: &BatchError) {
        if self.failures == 0 {
            warn!(error:% = error; "the store failed; it is retried with increasing delays");
        }
        self.failures += 1;
        self.retry_at = Some(after(Instant::now(), self.delays.next_delay()));
    }

    pub(crate) fn succeeded(&mut self) {
        if self.failures > 0 {
            info!(failures = self.failures; "the store works again");
            self.failures = 0;
            self.delays.reset();
        }
        self.retry_at = None;
    }

    /// When the store may be called again, if calls are backing off now.
    pub(crate) fn backs_off_until(&self, now: Instant) -> Option<Instant> {
        self.retry_at.filter(|at| now < *at)
    }
}
