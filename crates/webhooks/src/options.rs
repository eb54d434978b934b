use std::time::Duration;

use grid_batch_core::webhooks::AllowedNetworks;
use grid_batch_http::{HttpHeaders, TlsOptions};
use grid_batch_support::{Backoff, rng};

/// How events are delivered.
#[derive(Debug, Clone)]
pub struct DeliveryOptions {
    /// The delay after the first failure; each further one is four times as long.
    pub first_delay: Duration,
    /// The limit on delays.
    pub longest_delay: Duration,
    /// An event is given up after this many attempts.
    pub most_attempts: u32,
    /// The time limit of a request.
    pub request_timeout: Duration,
    /// How often the store is read when this process makes no commits.
    pub poll_interval: Duration,
    /// The private networks to which events may be sent.
    pub allowed: AllowedNetworks,
    /// Further headers of each request.
    pub headers: HttpHeaders,
    /// What TLS uses.
    pub tls: TlsOptions,
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self {
            first_delay: Duration::from_secs(5),
            longest_delay: Duration::from_secs(60 * 60),
            most_attempts: 10,
            request_timeout: Duration::from_secs(15),
            poll_interval: Duration::from_secs(1),
            allowed: AllowedNetworks::default(),
            headers: HttpHeaders::default(),
            tls: TlsOptions::default(),
        }
    }
}

impl DeliveryOptions {
    /// How long an instance keeps a webhook after it has stored something about it. It is longer than two requests
    /// take, because something is stored after the first.
    pub(crate) fn lease(&self) -> Duration {
        self.request_timeout.saturating_mul(3)
    }

    /// The same for the export of traces, whose collector has one sender. Nothing is given up, so its delays stay short.
    pub(crate) fn export_delay(&self, failures: u32) -> Duration {
        const LONGEST: Duration = Duration::from_secs(60);
        self.delay(failures).min(LONGEST)
    }

    /// The delay after this many failures. It has jitter, so that webhooks of one receiver do not try again together.
    pub(crate) fn delay(&self, failures: u32) -> Duration {
        let backoff = Backoff { first: self.first_delay, longest: self.longest_delay };
        let doublings = failures.saturating_sub(1).saturating_mul(2);
        backoff.delay(doublings, rng(None).f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_longest() {
        let options = DeliveryOptions::default();
        for (failures, seconds) in
            [(1, 5), (2, 20), (3, 80), (6, 3600), (7, 3600), (u32::MAX, 3600)]
        {
            let (delay, whole) = (options.delay(failures), Duration::from_secs(seconds));
            assert!(whole / 2 <= delay && delay <= whole, "{delay:?} after {failures} failures");
        }
    }
}
