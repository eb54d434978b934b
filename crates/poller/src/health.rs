use std::collections::HashMap;

use grid_batch_core::BatchError;
use log::{info, warn};
use tokio::time::Instant;

use crate::{backoff::Delays, looks::after};

/// Whether the store answers. While it does not, it is left alone for longer and longer.
#[derive(Debug)]
pub(crate) struct StoreHealth {
    delays: Delays,
    failures: u64,
    rests_until: Option<Instant>,
}

impl StoreHealth {
    pub(crate) fn new(delays: Delays) -> Self {
        Self { delays, failures: 0, rests_until: None }
    }

    pub(crate) fn failed(&mut self, error: &BatchError) {
        if self.failures == 0 {
            warn!(error:% = error; "the store fails; it is tried again");
        }
        self.failures += 1;
        self.rests_until = Some(after(Instant::now(), self.delays.after_failure()));
    }

    pub(crate) fn is_well(&mut self) {
        if self.failures > 0 {
            info!(failures = self.failures; "the store is well again");
            self.failures = 0;
            self.delays.reset();
        }
        self.rests_until = None;
    }

    /// Until when it is left alone, if it is.
    pub(crate) fn rests_until(&self, now: Instant) -> Option<Instant> {
        self.rests_until.filter(|until| now < *until)
    }
}

/// Which services fail at something: the log says so once when one begins to, and once when it is
/// well again.
#[derive(Debug)]
pub(crate) struct Troubles {
    what: &'static str,
    failures: HashMap<String, u64>,
}

impl Troubles {
    pub(crate) fn with(what: &'static str) -> Self {
        Self { what, failures: HashMap::new() }
    }

    pub(crate) fn failed(&mut self, service: &str, error: &BatchError) {
        if let Some(failures) = self.failures.get_mut(service) {
            *failures += 1;
            return;
        }
        self.failures.insert(service.to_owned(), 1);
        warn!(service = service, error:% = error; "{} of a service fails", self.what);
    }

    pub(crate) fn is_well(&mut self, service: &str) {
        if let Some(failures) = self.failures.remove(service) {
            info!(service = service, failures = failures; "{} of a service is well again", self.what);
        }
    }
}
