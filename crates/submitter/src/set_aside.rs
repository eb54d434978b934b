use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use grid_batch_core::ledger::SubmissionOutcome;
use grid_batch_core::{ScopeId, ServiceId};
use grid_batch_support::{Backoff, Delays};

/// The outcomes that could not be recorded because their service is locked. Each service is tried again
/// after increasing delays, by itself, so that no other service waits for it.
#[derive(Debug)]
pub(crate) struct SetAside<S: ScopeId> {
    services: BTreeMap<ServiceId, Waiting<S>>,
    backoff: Backoff,
}

#[derive(Debug)]
struct Waiting<S: ScopeId> {
    /// In order.
    outcomes: Vec<SubmissionOutcome<S>>,
    delays: Delays,
    next_try: Instant,
}

impl<S: ScopeId> SetAside<S> {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self { services: BTreeMap::new(), backoff }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Whether outcomes of the service wait, so that later ones must wait behind them.
    pub(crate) fn holds(&self, service: &ServiceId) -> bool {
        self.services.contains_key(service)
    }

    /// Adds an outcome behind those of its service.
    pub(crate) fn add(&mut self, outcome: SubmissionOutcome<S>, rng: fastrand::Rng, now: Instant) {
        let service = outcome.scope_id.service_id().clone();
        let waiting = self.services.entry(service).or_insert_with(|| {
            let mut delays = Delays::new(self.backoff, rng);
            let next_try = now + delays.next_delay();
            Waiting { outcomes: Vec::new(), delays, next_try }
        });
        waiting.outcomes.push(outcome);
    }

    /// How long it is until a service is tried again.
    pub(crate) fn next_retry(&self, now: Instant) -> Option<Duration> {
        let next = self.services.values().map(|waiting| waiting.next_try).min()?;
        Some(next.saturating_duration_since(now))
    }

    /// The outcomes of the services that are due, up to `limit` if there are several services. Their
    /// next try is later.
    pub(crate) fn due(&mut self, now: Instant, limit: usize) -> Vec<SubmissionOutcome<S>> {
        let mut due = Vec::new();
        for waiting in self.services.values_mut().filter(|waiting| waiting.next_try <= now) {
            if !due.is_empty() && due.len() + waiting.outcomes.len() > limit {
                break;
            }
            waiting.next_try = now + waiting.delays.next_delay();
            due.extend(waiting.outcomes.iter().cloned());
        }
        due
    }

    /// The outcomes of this service are recorded.
    pub(crate) fn remove(&mut self, service: &ServiceId) {
        self.services.remove(service);
    }

    /// All outcomes, in the order of each service.
    pub(crate) fn into_outcomes(self) -> impl Iterator<Item = SubmissionOutcome<S>> {
        self.services.into_values().flat_map(|waiting| waiting.outcomes)
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ServiceScopeId;
    use grid_batch_core::ledger::{Outcome, SubmissionAnswer};

    use super::*;

    fn outcome(service: &str, batch: &str) -> SubmissionOutcome<ServiceScopeId> {
        SubmissionOutcome {
            batch_header: batch.to_owned(),
            scope_id: service.parse().unwrap(),
            attempt_id: None,
            deadline: None,
            attempts: 1,
            answer: SubmissionAnswer {
                outcome: Outcome::Accepted,
                status: None,
                message: None,
                retry_after: None,
            },
        }
    }

    fn names(outcomes: impl IntoIterator<Item = SubmissionOutcome<ServiceScopeId>>) -> Vec<String> {
        outcomes.into_iter().map(|outcome| outcome.batch_header).collect()
    }

    const SECOND: Duration = Duration::from_secs(1);

    /// Delays between 1 s and 2 s at first.
    fn set_aside() -> SetAside<ServiceScopeId> {
        SetAside::new(Backoff { first: 2 * SECOND, longest: 60 * SECOND })
    }

    fn rng() -> fastrand::Rng {
        fastrand::Rng::with_seed(7)
    }

    #[test]
    fn services_are_tried_again_after_increasing_delays() {
        let mut set_aside = set_aside();
        let now = Instant::now();
        set_aside.add(outcome("a::b", "1"), rng(), now);
        set_aside.add(outcome("a::b", "2"), rng(), now);
        assert!(set_aside.due(now, 100).is_empty());
        let first = set_aside.next_retry(now).unwrap();
        assert!((SECOND..=2 * SECOND).contains(&first), "{first:?}");
        let now = now + first;
        assert_eq!(names(set_aside.due(now, 100)), ["1", "2"]);
        let second = set_aside.next_retry(now).unwrap();
        assert!((2 * SECOND..=4 * SECOND).contains(&second), "{second:?}");
    }

    #[test]
    fn recorded_service_is_removed() {
        let mut set_aside = set_aside();
        let now = Instant::now();
        set_aside.add(outcome("a::b", "1"), rng(), now);
        set_aside.add(outcome("a::c", "2"), rng(), now);
        let service = "a::b".parse().unwrap();
        assert!(set_aside.holds(&service));
        set_aside.remove(&service);
        assert!(!set_aside.holds(&service) && !set_aside.is_empty());
        assert_eq!(names(set_aside.into_outcomes()), ["2"]);
    }

    #[test]
    fn services_are_tried_in_groups() {
        let mut set_aside = set_aside();
        let now = Instant::now();
        for number in 0..5 {
            set_aside.add(outcome(&format!("a::{number}"), &number.to_string()), rng(), now);
        }
        let later = now + 10 * SECOND;
        assert_eq!(names(set_aside.due(later, 2)), ["0", "1"]);
        assert_eq!(names(set_aside.due(later, 2)), ["2", "3"]);
        assert_eq!(names(set_aside.due(later, 2)), ["4"]);
    }
}
