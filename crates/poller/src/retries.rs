use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::looks::after;

/// Services whose last question failed, and when to ask again.
///
/// The pace of their batches may be long, because events come: a question that failed has used its
/// event up, and there may be no other.
#[derive(Debug)]
pub(crate) struct Retries {
    services: HashMap<String, Retry>,
    first: Duration,
    longest: Duration,
}

#[derive(Debug)]
struct Retry {
    failures: u32,
    /// `None`: it is being asked.
    at: Option<Instant>,
}

impl Retries {
    /// Waits that begin with `first`, and double up to `longest`.
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { services: HashMap::new(), first, longest }
    }

    pub(crate) fn failed(&mut self, service: &str, now: Instant) {
        let retry =
            self.services.entry(service.to_owned()).or_insert(Retry { failures: 0, at: None });
        let wait = self.first.saturating_mul(2u32.saturating_pow(retry.failures));
        retry.at = Some(after(now, wait.min(self.longest)));
        retry.failures += 1;
    }

    pub(crate) fn is_well(&mut self, service: &str) {
        self.services.remove(service);
    }

    /// The services to ask now, each once.
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

    pub(crate) fn next(&self) -> Option<Instant> {
        self.services.values().filter_map(|retry| retry.at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_fails_again_is_asked_later_and_later_until_it_is_well() {
        let mut retries = Retries::new(SECOND, SECOND * 5);
        let now = Instant::now();
        for seconds in [1, 2, 4, 5, 5] {
            retries.failed("a", now);
            assert_eq!(retries.next(), Some(now + SECOND * seconds));
            assert_eq!(retries.take_due(now + SECOND * seconds - SECOND / 2), [""; 0]);
            assert_eq!(retries.take_due(now + SECOND * seconds), ["a"]);
            assert_eq!(retries.take_due(now + SECOND * 9), [""; 0]);
        }
        retries.is_well("a");
        retries.failed("a", now);
        assert_eq!(retries.next(), Some(now + SECOND));
    }
}
