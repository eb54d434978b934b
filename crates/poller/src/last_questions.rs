use std::{
    collections::{HashMap, hash_map::Entry},
    time::Duration,
};

use grid_batch_core::ServiceId;
use tokio::time::Instant;

/// The last question about the next batches of each service.
#[derive(Debug, Default)]
pub(crate) struct LastQuestions(HashMap<ServiceId, Question>);

#[derive(Debug)]
struct Question {
    asked_at: Instant,
    batches: usize,
    /// How many of the batches the ledger has not accepted yet.
    not_accepted: usize,
}

/// Answers count for a short time only, so the ledger is asked again soon.
const SUFFICIENT_FOR: Duration = Duration::from_secs(1);

/// The number of services at which old questions are removed.
const MAX_SERVICES: usize = 10_000;

impl Question {
    fn is_recent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.asked_at) < SUFFICIENT_FOR
    }
}

impl LastQuestions {
    /// The ledger is asked about this many of the service's next batches.
    pub(crate) fn add(&mut self, service_id: &ServiceId, batches: usize, now: Instant) {
        if self.0.len() >= MAX_SERVICES {
            self.0.retain(|_, question| question.is_recent(now));
        }
        let question = Question { asked_at: now, batches, not_accepted: batches };
        self.0.insert(service_id.clone(), question);
    }

    /// The ledger has accepted a batch of the service.
    pub(crate) fn accepted(&mut self, service_id: &ServiceId) {
        if let Some(question) = self.0.get_mut(service_id) {
            question.not_accepted = question.not_accepted.saturating_sub(1);
        }
    }

    /// Whether no other question is needed now: the ledger has not accepted at least half of the batches of the
    /// last one.
    pub(crate) fn is_sufficient(&mut self, service_id: &ServiceId, now: Instant) -> bool {
        let Entry::Occupied(entry) = self.0.entry(service_id.clone()) else { return false };
        let question = entry.get();
        let is_sufficient = question.not_accepted > 0
            && 2 * question.not_accepted >= question.batches
            && question.is_recent(now);
        if !is_sufficient {
            entry.remove();
        }
        is_sufficient
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
            let (mut asked, now) = (LastQuestions::default(), Instant::now());
            let (busy, other) = (service("a::busy"), service("a::other"));
            asked.add(&busy, batches, now);
            asked.add(&other, batches, now);
            for _ in 0..enough {
                assert!(asked.is_sufficient(&busy, now), "{batches}");
                asked.accepted(&busy);
            }
            assert!(!asked.is_sufficient(&busy, now), "{batches}");
            assert!(asked.is_sufficient(&other, now));
        }
    }

    #[test]
    fn answers_suffice_for_a_short_time() {
        let (mut asked, now) = (LastQuestions::default(), Instant::now());
        let service = service("a::b");
        assert!(!asked.is_sufficient(&service, now), "nothing was asked");
        asked.add(&service, 8, now);
        assert!(asked.is_sufficient(&service, now + SUFFICIENT_FOR / 2));
        assert!(!asked.is_sufficient(&service, now + SUFFICIENT_FOR));
        assert!(!asked.is_sufficient(&service, now), "it is forgotten");
    }

    #[test]
    fn more_batches_may_be_accepted_than_were_asked_about() {
        let (mut asked, now) = (LastQuestions::default(), Instant::now());
        let service = service("a::b");
        asked.add(&service, 1, now);
        (0..3).for_each(|_| asked.accepted(&service));
        assert!(!asked.is_sufficient(&service, now));
        asked.accepted(&service);
    }

    #[test]
    fn old_questions_are_removed() {
        let (mut asked, now) = (LastQuestions::default(), Instant::now());
        for number in 0..MAX_SERVICES {
            asked.add(&service(&format!("a::{number}")), 1, now);
        }
        asked.add(&service("a::next"), 1, now + SUFFICIENT_FOR);
        assert_eq!(asked.0.len(), 1);
    }
}
