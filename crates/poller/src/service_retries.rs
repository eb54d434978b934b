use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::instant::after;

/// Retries of services whose last status request failed.
///
/// Their batches may be due much later, because events are expected to trigger polls. A request that
/// failed has used up its event, and there may be no other.
#[derive(Debug)]
pub(crate) struct ServiceRetries {
    services: HashMap<String, ServiceRetry>,
    first: Duration,
    longest: Duration,
}

#[derive(Debug)]
struct ServiceRetry {
    failures: u32,
    /// `None` while the retry is in flight.
    at: Option<Instant>,
}

impl ServiceRetries {
    /// Retries after `first`, then after delays that double up to `longest`.
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { services: HashMap::new(), first, longest }
    }

    pub(crate) fn failed(&mut self, service: &str, now: Instant) {
        let retry = self
            .services
            .entry(service.to_owned())
            .or_insert(ServiceRetry { failures: 0, at: None });
        let delay = self.first.saturating_mul(2u32.saturating_pow(retry.failures));
        retry.at = Some(after(now, delay.min(self.longest)));
        retry.failures += 1;
    }

    pub(crate) fn succeeded(&mut self, service: &str) {
        self.services.remove(service);
    }

    /// Takes the services to retry now. Each is taken once for each failure.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<String> {
        let mut due = Vec::new();
        for (service, retry) in &mut self.services {
            if retry.at.is_some_and(|at| at <= now) {
                retry.at = None;
                due.push(service.clone());
            }
        }
        due
    }

    /// When the next retry is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.services.values().filter_map(|retry| retry.at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn retry_delays_double_until_a_success() {
        let mut retries = ServiceRetries::new(SECOND, SECOND * 5);
        let now = Instant::now();
        for seconds in [1, 2, 4, 5, 5] {
            retries.failed("a", now);
            assert_eq!(retries.next(), Some(now + SECOND * seconds));
            assert_eq!(retries.take_due(now + SECOND * seconds - SECOND / 2), [""; 0]);
            assert_eq!(retries.take_due(now + SECOND * seconds), ["a"]);
            assert_eq!(retries.take_due(now + SECOND * 9), [""; 0]);
        }
        retries.succeeded("a");
        retries.failed("a", now);
        assert_eq!(retries.next(), Some(now + SECOND));
    }
}
