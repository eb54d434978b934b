use std::{
    collections::{HashMap, hash_map::Entry},
    time::Duration,
};

use grid_batch_core::ServiceId;
use tokio::time::Instant;

/// How many batches of each service the ledger was asked about and has not accepted yet.
#[derive(Debug, Default)]
pub(crate) struct AskedBatches(HashMap<ServiceId, Asked>);

#[derive(Debug)]
struct Asked {
    time: Instant,
    batches: usize,
    not_accepted: usize,
}

/// Answers count for a short time only, so the ledger is asked again soon.
const SUFFICE_FOR: Duration = Duration::from_secs(1);

impl AskedBatches {
    /// The ledger is asked about this many of the service's next batches.
    pub(crate) fn add(&mut self, service_id: &ServiceId, batches: usize, now: Instant) {
        let asked = Asked { time: now, batches, not_accepted: batches };
        self.0.insert(service_id.clone(), asked);
    }

    /// The ledger has accepted a batch of the service.
    pub(crate) fn accepted(&mut self, service_id: &ServiceId) {
        if let Some(asked) = self.0.get_mut(service_id) {
            asked.not_accepted = asked.not_accepted.saturating_sub(1);
        }
    }

    /// Whether the ledger need not be asked now: at least half of the batches of the last question are still
    /// to be sent.
    pub(crate) fn suffice(&mut self, service_id: &ServiceId, now: Instant) -> bool {
        let Entry::Occupied(entry) = self.0.entry(service_id.clone()) else { return false };
        let asked = entry.get();
        let suffice = asked.not_accepted > 0
            && 2 * asked.not_accepted >= asked.batches
            && now.saturating_duration_since(asked.time) < SUFFICE_FOR;
        if !suffice {
            entry.remove();
        }
        suffice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str) -> ServiceId {
        name.parse().unwrap()
    }

    #[test]
    fn answers_suffice_until_most_batches_are_accepted() {
        for (batches, enough) in [(1, 1), (2, 2), (3, 2), (8, 5)] {
            let (mut asked, now) = (AskedBatches::default(), Instant::now());
            let (busy, other) = (service("a::busy"), service("a::other"));
            asked.add(&busy, batches, now);
            asked.add(&other, batches, now);
            for _ in 0..enough {
                assert!(asked.suffice(&busy, now), "{batches}");
                asked.accepted(&busy);
            }
            assert!(!asked.suffice(&busy, now), "{batches}");
            assert!(asked.suffice(&other, now));
        }
    }

    #[test]
    fn answers_suffice_for_a_short_time() {
        let (mut asked, now) = (AskedBatches::default(), Instant::now());
        let service = service("a::b");
        assert!(!asked.suffice(&service, now), "nothing was asked");
        asked.add(&service, 8, now);
        assert!(asked.suffice(&service, now + SUFFICE_FOR / 2));
        assert!(!asked.suffice(&service, now + SUFFICE_FOR));
        assert!(!asked.suffice(&service, now), "it is forgotten");
    }

    #[test]
    fn more_batches_may_be_accepted_than_were_asked_about() {
        let (mut asked, now) = (AskedBatches::default(), Instant::now());
        let service = service("a::b");
        asked.add(&service, 1, now);
        (0..3).for_each(|_| asked.accepted(&service));
        assert!(!asked.suffice(&service, now));
        asked.accepted(&service);
    }
}
