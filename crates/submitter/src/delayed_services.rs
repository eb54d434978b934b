use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use grid_batch_core::{
    Clock, MonotonicTime, Outcome, Recorded, RecordedSubscriber, ServiceId, SubmissionAnswer,
};
use log::{info, warn};

use crate::listener::log_excerpt;

/// Knows the services whose batches the ledger does not accept, and warns of those that wait long: once a
/// service, then of all at growing intervals, and when they go on. Clones share what they know.
///
/// A service counts from the first attempt that certainly failed until one that did not. A closed gate, such
/// as that of the gas price, is no failure. What is known is that of this process: it begins anew after a
/// restart.
///
/// If several batches of a service may be under way, a batch that the ledger refuses as it is counts by itself:
/// that others are accepted says nothing about it.
#[derive(Clone)]
pub struct DelayedServices(Arc<Shared>);

struct Shared {
    warn_after: Duration,
    keep: Duration,
    /// Whether several batches of a service may be under way.
    several: bool,
    clock: Arc<dyn Clock>,
    state: Mutex<Delayed>,
}

#[derive(Default)]
struct Delayed {
    services: HashMap<WhatWaits, Waiting>,
    /// When the next warning about all services is due, and the pause after it.
    repeat: Option<(MonotonicTime, Duration)>,
}

/// A service, or a batch of it that counts by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct WhatWaits {
    service_id: ServiceId,
    batch_id: Option<String>,
}

struct Waiting {
    batch_id: String,
    since: MonotonicTime,
    last_seen: MonotonicTime,
    attempts: u64,
    outcome: Outcome,
    error: String,
    warned: bool,
}

/// The services whose batches the ledger does not accept now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayedSummary {
    /// How many they are.
    pub services: usize,
    /// How many of them wait longer than the time after which a warning is logged.
    pub long: usize,
    /// The one that waits longest.
    pub longest: Option<DelayedService>,
}

/// A service whose batches the ledger does not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayedService {
    /// The service.
    pub service_id: ServiceId,
    /// The batch that waits.
    pub batch_id: String,
    /// Since the first attempt that failed.
    pub waiting_for: Duration,
    /// How many attempts failed in a row.
    pub attempts: u64,
    /// The outcome of the last one.
    pub outcome: Outcome,
    /// Its error.
    pub error: String,
}

/// The greatest number of services that are watched.
const CAPACITY: usize = 100_000;

/// How many services a look warns of one by one.
const NAMED: usize = 10;

/// A service without an attempt for this long, and for two of the longest delays, is forgotten: its batch
/// was decided or is held, or another instance has it.
const KEEP: Duration = Duration::from_mins(15);

/// Warnings are repeated at growing intervals, up to this one.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

impl DelayedServices {
    /// No service is delayed yet. A warning is logged when one is for `warn_after`. No attempt follows its
    /// last one later than after `longest_delay`.
    pub fn new(warn_after: Duration, longest_delay: Duration, clock: Arc<dyn Clock>) -> Self {
        let keep = longest_delay.saturating_mul(2).max(KEEP);
        let state = Mutex::default();
        Self(Arc::new(Shared { warn_after, keep, several: false, clock, state }))
    }

    /// Sets whether several batches of a service may be under way. No service is delayed yet.
    #[must_use]
    pub fn with_several_batches(self, several: bool) -> Self {
        let Shared { warn_after, keep, ref clock, .. } = *self.0;
        let (clock, state) = (Arc::clone(clock), Mutex::default());
        Self(Arc::new(Shared { warn_after, keep, several, clock, state }))
    }

    /// The present summary. It is read from memory.
    pub fn read(&self) -> DelayedSummary {
        let now = self.0.clock.monotonic();
        let state = self.lock();
        let long = state.long(now, self.0.warn_after).count();
        let longest = state.services.iter().min_by_key(|(what, waiting)| (waiting.since, *what));
        DelayedSummary {
            services: state
                .services
                .keys()
                .map(|what| &what.service_id)
                .collect::<HashSet<_>>()
                .len(),
            long,
            longest: longest.map(|(what, waiting)| waiting.describe(&what.service_id, now)),
        }
    }

    /// Forgets a batch that has ended or waits for something else now, such as an operator.
    pub fn forget(&self, service_id: &ServiceId, batch_id: &str) {
        let mut state = self.lock();
        state.services.remove(&WhatWaits::batch(service_id, batch_id));
        let of_service = WhatWaits::service(service_id);
        let is_about_batch = |waiting: &Waiting| !self.0.several || waiting.batch_id == batch_id;
        if state.services.get(&of_service).is_some_and(is_about_batch) {
            state.services.remove(&of_service);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().services.is_empty()
    }

    /// A submission ended with this answer. Returns whether that is news: it is not if the last one of the
    /// same batch ended the same way and failed, too.
    pub(crate) fn observe(
        &self,
        service_id: &ServiceId,
        batch_id: &str,
        answer: &SubmissionAnswer,
    ) -> bool {
        let now = self.0.clock.monotonic();
        let mut state = self.lock();
        if !is_failure(answer.outcome) {
            let what = [WhatWaits::service(service_id), WhatWaits::batch(service_id, batch_id)];
            let ended = what.iter().filter_map(|what| state.services.remove(what));
            for waiting in ended.filter(|waiting| waiting.warned) {
                let (seconds, attempts) = (now.since(waiting.since).as_secs(), waiting.attempts);
                info!(service:% = service_id, seconds, attempts; "the service goes on");
            }
            return true;
        }
        let counts_by_itself = self.0.several && answer.outcome == Outcome::RefusedBatch;
        let what = match counts_by_itself {
            true => WhatWaits::batch(service_id, batch_id),
            false => WhatWaits::service(service_id),
        };
        let error = answer.message.as_deref().map(log_excerpt).unwrap_or_default();
        let is_full = state.services.len() >= CAPACITY;
        match state.services.get_mut(&what) {
            Some(waiting) => {
                let is_other = !self.0.several && waiting.batch_id != batch_id;
                let is_news = waiting.outcome != answer.outcome || is_other;
                batch_id.clone_into(&mut waiting.batch_id);
                (waiting.outcome, waiting.error) = (answer.outcome, error);
                (waiting.last_seen, waiting.attempts) = (now, waiting.attempts + 1);
                is_news
            }
            None if is_full => false,
            None => {
                let waiting = Waiting {
                    batch_id: batch_id.to_owned(),
                    since: now,
                    last_seen: now,
                    attempts: 1,
                    outcome: answer.outcome,
                    error,
                    warned: false,
                };
                state.services.insert(what, waiting);
                true
            }
        }
    }

    /// Logs warnings that are due.
    pub(crate) fn log_changes(&self) {
        let now = self.0.clock.monotonic();
        let (warn_after, keep) = (self.0.warn_after, self.0.keep);
        let mut state = self.lock();
        state.services.retain(|_, waiting| now.since(waiting.last_seen) < keep);
        let long = state.long(now, warn_after).count();
        if long == 0 {
            state.repeat = None;
            return;
        }
        state.warn_of_new(now, warn_after);
        match state.repeat {
            None => state.repeat = Some((now.plus(warn_after), warn_after)),
            Some((at, pause)) if now >= at => {
                state.warn_of_all(now, long);
                let pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
                state.repeat = Some((now.plus(pause), pause));
            }
            Some(_) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Delayed> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Delayed {
    fn long(
        &self,
        now: MonotonicTime,
        warn_after: Duration,
    ) -> impl Iterator<Item = (&WhatWaits, &Waiting)> {
        self.services.iter().filter(move |(_, waiting)| now.since(waiting.since) >= warn_after)
    }

    /// Warns once of each service; of many at once in one line.
    fn warn_of_new(&mut self, now: MonotonicTime, warn_after: Duration) {
        let due = |waiting: &Waiting| !waiting.warned && now.since(waiting.since) >= warn_after;
        let mut due: Vec<(&WhatWaits, &mut Waiting)> =
            self.services.iter_mut().filter(|(_, waiting)| due(waiting)).collect();
        due.sort_unstable_by_key(|(what, waiting)| (waiting.since, *what));
        for (what, waiting) in due.iter_mut().take(NAMED) {
            warn!(
                service:% = what.service_id, batch_id = waiting.batch_id.as_str(), attempts = waiting.attempts,
                seconds = now.since(waiting.since).as_secs(), outcome:% = waiting.outcome,
                error = waiting.error.as_str();
                "the ledger does not accept the batch of a service; it is tried again"
            );
        }
        if let Some(more) = due.len().checked_sub(NAMED).filter(|more| *more > 0) {
            warn!(services = more; "the ledger does not accept the batches of more services");
        }
        due.iter_mut().for_each(|(_, waiting)| waiting.warned = true);
    }

    fn warn_of_all(&self, now: MonotonicTime, services: usize) {
        let oldest = self.services.iter().min_by_key(|(what, waiting)| (waiting.since, *what));
        let Some((what, waiting)) = oldest else { return };
        warn!(
            services, oldest:% = what.service_id, batch_id = waiting.batch_id.as_str(),
            seconds = now.since(waiting.since).as_secs(), outcome:% = waiting.outcome,
            error = waiting.error.as_str();
            "the ledger still does not accept the batches of services"
        );
    }
}

impl WhatWaits {
    fn service(service_id: &ServiceId) -> Self {
        Self { service_id: service_id.clone(), batch_id: None }
    }

    fn batch(service_id: &ServiceId, batch_id: &str) -> Self {
        Self { service_id: service_id.clone(), batch_id: Some(batch_id.to_owned()) }
    }
}

impl Waiting {
    fn describe(&self, service_id: &ServiceId, now: MonotonicTime) -> DelayedService {
        DelayedService {
            service_id: service_id.clone(),
            batch_id: self.batch_id.clone(),
            waiting_for: now.since(self.since),
            attempts: self.attempts,
            outcome: self.outcome,
            error: self.error.clone(),
        }
    }
}

/// A batch that is held after an attempt waits for an operator, and not for the ledger.
impl RecordedSubscriber for DelayedServices {
    fn recorded(&self, entry: Recorded<'_>) {
        if let Recorded::Change { change, .. } | Recorded::NotApplied { change, .. } = entry
            && change.hold.is_some()
            && change.event.ends_submission()
        {
            self.forget(&change.service_id, &change.batch_id.to_string());
        }
    }
}

fn is_failure(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Busy | Outcome::NotSent | Outcome::Refused | Outcome::RefusedBatch => true,
        Outcome::Accepted
        | Outcome::Committed
        | Outcome::Parked
        | Outcome::PoolParked
        | Outcome::Rejected
        | Outcome::NotProvedNew
        | Outcome::Ambiguous => false,
    }
}

impl fmt::Debug for DelayedServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DelayedServices").field(&self.read()).finish()
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{BatchState, Change, Event, ItemId, ManualClock};

    use super::*;

    const MIN: Duration = Duration::from_mins(1);

    fn delayed() -> (DelayedServices, Arc<ManualClock>) {
        delayed_for(MIN)
    }

    fn delayed_for(longest_delay: Duration) -> (DelayedServices, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        (DelayedServices::new(2 * MIN, longest_delay, Arc::<ManualClock>::clone(&clock)), clock)
    }

    fn service(number: u8) -> ServiceId {
        format!("circuit::{number}").parse().unwrap()
    }

    fn answer(outcome: Outcome) -> SubmissionAnswer {
        let message = Some(format!("it is {outcome}"));
        SubmissionAnswer { outcome, status: None, message, retry_after: None }
    }

    #[test]
    fn service_counts_until_an_attempt_does_not_fail() {
        for ends in [Outcome::Accepted, Outcome::Parked, Outcome::Rejected, Outcome::Ambiguous] {
            let (delayed, clock) = delayed();
            for outcome in [Outcome::Busy, Outcome::NotSent, Outcome::Refused] {
                delayed.observe(&service(1), "b", &answer(outcome));
                clock.advance(MIN);
            }
            let summary = delayed.read();
            assert_eq!((summary.services, summary.long), (1, 1));
            let longest = summary.longest.unwrap();
            assert_eq!((longest.waiting_for, longest.attempts), (3 * MIN, 3));
            assert_eq!(longest.error, "it is refused");
            delayed.observe(&service(1), "b", &answer(ends));
            assert_eq!(delayed.read().services, 0, "{ends}");
        }
    }

    #[test]
    fn only_the_first_of_equal_failures_is_news() {
        let (delayed, _) = delayed();
        let observe = |batch: &str, outcome| delayed.observe(&service(1), batch, &answer(outcome));
        assert!(observe("a", Outcome::Busy));
        assert!(!observe("a", Outcome::Busy));
        assert!(observe("a", Outcome::Refused));
        assert!(observe("b", Outcome::Refused));
        assert!(observe("b", Outcome::Accepted));
        assert!(observe("b", Outcome::Accepted));
    }

    #[test]
    fn refused_batch_counts_beside_accepted_ones_of_its_service() {
        let (delayed, clock) = delayed();
        let delayed = delayed.with_several_batches(true);
        let observe = |batch: &str, outcome| delayed.observe(&service(1), batch, &answer(outcome));
        assert!(observe("refused", Outcome::RefusedBatch));
        assert!(observe("other", Outcome::Busy));
        assert!(!observe("another", Outcome::Busy), "the ledger is busy for all of them");
        assert_eq!(delayed.read().services, 1);
        clock.advance(3 * MIN);
        assert!(observe("another", Outcome::Accepted));
        assert!(!observe("refused", Outcome::RefusedBatch));
        let longest = delayed.read().longest.unwrap();
        assert_eq!((longest.batch_id.as_str(), longest.attempts), ("refused", 2));
        assert_eq!(longest.waiting_for, 3 * MIN);
        delayed.forget(&service(1), "another");
        assert_eq!(delayed.read().services, 1);
        delayed.forget(&service(1), "refused");
        assert!(delayed.is_empty());
    }

    #[test]
    fn service_is_forgotten_when_its_batch_is_held() {
        let (delayed, _) = delayed();
        let event = Event::Outcome { attempt: 1, outcome: Outcome::Refused };
        let change = Change::new(service(1), ItemId::from_bytes([1; 64]), event);
        let is_forgotten = |hold: Option<&str>| {
            delayed.observe(&service(1), &change.batch_id.to_string(), &answer(Outcome::Refused));
            let change = &Change { hold: hold.map(str::to_owned), ..change.clone() };
            let state = BatchState::Delayed;
            delayed.recorded(Recorded::Change { change, state, next_waits: false });
            delayed.is_empty()
        };
        assert!(!is_forgotten(None));
        assert!(is_forgotten(Some("refused too often")));
    }

    #[test]
    fn service_without_attempts_is_forgotten() {
        let (delayed, clock) = delayed();
        delayed.observe(&service(1), "a", &answer(Outcome::Busy));
        clock.advance(KEEP / 2);
        delayed.observe(&service(2), "b", &answer(Outcome::Busy));
        clock.advance(KEEP / 2);
        delayed.log_changes();
        assert_eq!(delayed.read().longest.unwrap().service_id, service(2));
        delayed.forget(&service(2), "another one of the service");
        assert!(delayed.is_empty());
    }

    #[test]
    fn service_is_kept_during_a_long_delay() {
        let (delayed, clock) = delayed_for(4 * KEEP);
        delayed.observe(&service(1), "a", &answer(Outcome::Busy));
        clock.advance(4 * KEEP);
        delayed.log_changes();
        assert!(!delayed.observe(&service(1), "a", &answer(Outcome::Busy)), "it is known");
        clock.advance(8 * KEEP);
        delayed.log_changes();
        assert!(delayed.is_empty());
    }
}
