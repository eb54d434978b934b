use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::ledger::{Outcome, SubmissionAnswer};
use grid_batch_core::{Clock, MonotonicTime, ServiceId};
use grid_batch_support::{Backoff, lock};
use grid_batch_work::{Delay, DueKind, DueTimes, Work, WorkKey, WorkTable};
use log::{info, warn};

use crate::listener::log_excerpt;

/// Knows the services whose batches the ledger does not accept, and warns of those that wait long: once a
/// service, then of all at growing intervals, and when they go on. It is a view of a [`WorkTable`].
///
/// A service counts from the first attempt that certainly failed until one that did not. A closed gate, such
/// as that of the gas price, is no failure. What is known is that of this process: it begins anew after a
/// restart.
///
/// If several batches of a service may be under way, a batch that the ledger refuses as it is counts by itself:
/// that others are accepted says nothing about it.
#[derive(Clone)]
pub struct DelayedServices {
    table: WorkTable,
    warn_after: Duration,
    keep: Duration,
    /// Whether several batches of a service may be under way.
    several: bool,
    clock: Arc<dyn Clock>,
    /// When the next warning about all services is due, and how many were logged before.
    repeat: Arc<Mutex<Option<(MonotonicTime, u32)>>>,
}

/// The services whose batches the ledger does not accept now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayedSummary {
    /// How many they are.
    pub services: usize,
    /// To how many of them the ledger last answered that it is busy.
    pub busy: usize,
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

/// Limit on the number of services that are watched.
const CAPACITY: usize = 100_000;

/// How many services a look warns of one by one.
const NAMED: usize = 10;

/// A service without an attempt for this long, and for two of the longest delays, is forgotten: its batch
/// was decided or is held, or another instance has it.
const KEEP: Duration = Duration::from_mins(15);

/// Warnings are repeated at growing intervals, up to this one.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

impl DelayedServices {
    /// Reads and writes this table. A warning is logged when a service is delayed for `warn_after`. No attempt follows
    /// its last one later than after `longest_delay`.
    pub fn new(
        table: WorkTable,
        warn_after: Duration,
        longest_delay: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let keep = longest_delay.saturating_mul(2).max(KEEP);
        Self { table, warn_after, keep, several: false, clock, repeat: Arc::default() }
    }

    /// Sets whether several batches of a service may be under way.
    #[must_use]
    pub fn with_several_batches(self, several: bool) -> Self {
        Self { several, ..self }
    }

    /// The present summary. It is read from memory.
    pub fn read(&self) -> DelayedSummary {
        let now = self.clock.monotonic();
        let work = self.table.lock();
        let delays = work.due.of(DueKind::Delay);
        let services: HashSet<_> = delays.map(|(_, key)| &key.service_id).collect();
        let is_busy = |id: &&&Arc<str>| {
            let delay = work.service(id).and_then(|service| service.sending.delay.as_ref());
            delay.is_some_and(|delay| delay.outcome == Outcome::Busy)
        };
        DelayedSummary {
            services: services.len(),
            busy: services.iter().filter(is_busy).count(),
            long: self.long(&work, now),
            longest: longest(&work, now),
        }
    }

    /// What is known of a service whose batches the ledger does not accept.
    pub fn of(&self, service_id: &ServiceId) -> Option<DelayedService> {
        let (now, work, key) = (self.clock.monotonic(), self.table.lock(), key(service_id, None));
        describe(work.service(&key.service_id)?.sending.delay.as_ref()?, &key, now)
    }

    /// Forgets a batch that has ended or waits for something else now, such as an operator.
    pub fn forget(&self, service_id: &ServiceId, batch_id: &str) {
        let mut work = self.table.lock();
        end(&mut work, &key(service_id, Some(batch_id)));
        let of_service = key(service_id, None);
        let is_about_batch = |delay: &Delay| !self.several || delay.batch_id == batch_id;
        if delay(&mut work, &of_service).is_some_and(|delay| is_about_batch(delay)) {
            end(&mut work, &of_service);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.lock().due.count(DueKind::Delay) == 0
    }

    /// A submission ended with this answer. Returns whether that is news: it is not if the last one of the
    /// same batch ended the same way and failed, too.
    pub(crate) fn observe(
        &self,
        service_id: &ServiceId,
        batch_id: &str,
        answer: &SubmissionAnswer,
    ) -> bool {
        let now = self.clock.monotonic();
        let mut work = self.table.lock();
        if !is_failure(answer.outcome) {
            let ended = match work.due.count(DueKind::Delay) {
                0 => [None, None],
                _ => [None, Some(batch_id)]
                    .map(|batch_id| end(&mut work, &key(service_id, batch_id))),
            };
            drop(work);
            log_that_it_goes_on(service_id, ended, now);
            return true;
        }
        let counts_by_itself = self.several && answer.outcome == Outcome::RefusedBatch;
        let key = key(service_id, counts_by_itself.then_some(batch_id));
        let error = answer.message.as_deref().map(log_excerpt).unwrap_or_default();
        if let Some(delay) = delay(&mut work, &key) {
            let is_other = !self.several && delay.batch_id != batch_id;
            let is_news = delay.outcome != answer.outcome || is_other;
            batch_id.clone_into(&mut delay.batch_id);
            (delay.outcome, delay.error) = (answer.outcome, error);
            (delay.last_seen, delay.attempts) = (now, delay.attempts + 1);
            return is_news;
        }
        if work.due.count(DueKind::Delay) >= CAPACITY {
            return false;
        }
        let delay = Delay {
            batch_id: batch_id.to_owned(),
            since: None,
            first_seen: now,
            last_seen: now,
            attempts: 1,
            outcome: answer.outcome,
            error,
            warned: false,
        };
        begin(&mut work, &key, delay, now);
        true
    }

    /// Logs warnings that are due.
    pub(crate) fn log_changes(&self) {
        let now = self.clock.monotonic();
        let mut work = self.table.lock();
        self.forget_old(&mut work, now);
        let (long, longest) = (self.long(&work, now), longest(&work, now));
        let new = self.new_warnings(&mut work, now);
        drop(work);
        warn_of_new(&new);
        let mut repeat = lock(&self.repeat);
        let pauses = Backoff { first: self.warn_after, longest: LONGEST_PAUSE };
        match *repeat {
            _ if long == 0 => *repeat = None,
            None => *repeat = Some((now.plus(self.warn_after), 0)),
            Some((at, warnings)) if now >= at => {
                longest.iter().for_each(|longest| warn_of_all(longest, long));
                let warnings = warnings.saturating_add(1);
                *repeat = Some((now.plus(pauses.whole_delay(warnings)), warnings));
            }
            Some(_) => {}
        }
    }

    fn forget_old(&self, work: &mut Work, now: MonotonicTime) {
        let keys: Vec<WorkKey> = work.due.of(DueKind::Delay).map(|(_, key)| key.clone()).collect();
        for key in keys {
            if delay(work, &key).is_some_and(|delay| now.since(delay.last_seen) >= self.keep) {
                end(work, &key);
            }
        }
    }

    /// How many are delayed for so long that a warning is logged.
    fn long(&self, work: &Work, now: MonotonicTime) -> usize {
        let is_long = |since: MonotonicTime| now.since(since) >= self.warn_after;
        work.due.of(DueKind::Delay).take_while(|(since, _)| is_long(*since)).count()
    }

    /// Services that have been delayed for long, without a warning yet.
    fn new_warnings(&self, work: &mut Work, now: MonotonicTime) -> Vec<DelayedService> {
        let long = work.due.of(DueKind::Delay);
        let long = long.take_while(|(since, _)| now.since(*since) >= self.warn_after);
        let keys: Vec<WorkKey> = long.map(|(_, key)| key.clone()).collect();
        let mut new_of = |key: WorkKey| {
            let delay = delay(work, &key).filter(|delay| !delay.warned)?;
            delay.warned = true;
            describe(delay, &key, now)
        };
        keys.into_iter().filter_map(&mut new_of).collect()
    }
}

// The table is not locked while something is logged.

fn log_that_it_goes_on(service_id: &ServiceId, ended: [Option<Delay>; 2], now: MonotonicTime) {
    for delay in ended.into_iter().flatten().filter(|delay| delay.warned) {
        let (seconds, failed) = (now.since(delay.first_seen).as_secs(), delay.attempts);
        info!(service:% = service_id, seconds, failed_in_a_row = failed; "the service goes on");
    }
}

/// Warns once of each service; of many at once in one line.
fn warn_of_new(delayed: &[DelayedService]) {
    let (named, more) = delayed.split_at(NAMED.min(delayed.len()));
    for it in named {
        warn!(
            service:% = it.service_id, batch_id = it.batch_id.as_str(), failed_in_a_row = it.attempts,
            seconds = it.waiting_for.as_secs(), outcome:% = it.outcome, error = it.error.as_str();
            "the ledger does not accept the batch of a service; it is tried again"
        );
    }
    if !more.is_empty() {
        warn!(services = more.len(); "the ledger does not accept the batches of more services");
    }
}

fn warn_of_all(longest: &DelayedService, services: usize) {
    warn!(
        services, oldest:% = longest.service_id, batch_id = longest.batch_id.as_str(),
        seconds = longest.waiting_for.as_secs(), outcome:% = longest.outcome,
        error = longest.error.as_str();
        "the ledger still does not accept the batches of services"
    );
}

/// A service, or a batch of it that counts by itself.
fn key(service_id: &ServiceId, batch_id: Option<&str>) -> WorkKey {
    WorkKey { service_id: service_id.as_str().into(), batch_id: batch_id.map(Into::into) }
}

/// The place of what is known of a delay, if its service or batch has a record.
fn slot<'a>(
    work: &'a mut Work,
    key: &WorkKey,
) -> Option<(&'a mut Option<Box<Delay>>, &'a mut DueTimes)> {
    let service = work.services.get_mut(&key.service_id)?;
    let slot = match &key.batch_id {
        None => &mut service.sending.delay,
        Some(batch_id) => &mut service.batches.get_mut(batch_id)?.sending.delay,
    };
    Some((slot, &mut work.due))
}

fn delay<'a>(work: &'a mut Work, key: &WorkKey) -> Option<&'a mut Delay> {
    slot(work, key)?.0.as_deref_mut()
}

fn begin(work: &mut Work, key: &WorkKey, delay: Delay, now: MonotonicTime) {
    let mut entered = work.enter(&key.service_id);
    let (key, slot, due) = match &key.batch_id {
        None => (entered.key, &mut entered.service.sending.delay, entered.due),
        Some(batch_id) => {
            let (key, batch, due) = entered.batch(batch_id);
            (key, &mut batch.sending.delay, due)
        }
    };
    let delay = slot.insert(Box::new(delay));
    due.set(&mut delay.since, DueKind::Delay, now, key);
}

fn end(work: &mut Work, key: &WorkKey) -> Option<Delay> {
    let (slot, due) = slot(work, key)?;
    let mut delay = slot.take()?;
    due.clear(&mut delay.since);
    work.remove_unneeded(&key.service_id, key.batch_id.as_deref());
    Some(*delay)
}

/// The one that waits longest.
fn longest(work: &Work, now: MonotonicTime) -> Option<DelayedService> {
    let (_, key) = work.due.of(DueKind::Delay).next()?;
    let delay = match &key.batch_id {
        None => work.service(&key.service_id)?.sending.delay.as_deref()?,
        Some(batch_id) => work.batch(&key.service_id, batch_id)?.sending.delay.as_deref()?,
    };
    describe(delay, key, now)
}

fn describe(delay: &Delay, key: &WorkKey, now: MonotonicTime) -> Option<DelayedService> {
    Some(DelayedService {
        service_id: key.service_id.parse().ok()?,
        batch_id: delay.batch_id.clone(),
        waiting_for: now.since(delay.first_seen),
        attempts: delay.attempts,
        outcome: delay.outcome,
        error: delay.error.clone(),
    })
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
    use grid_batch_core::batches::{BatchState, Change, Event};
    use grid_batch_core::{ItemId, ManualClock};

    use super::*;

    const MIN: Duration = Duration::from_mins(1);

    fn delayed() -> (DelayedServices, Arc<ManualClock>) {
        delayed_for(MIN)
    }

    fn delayed_for(longest_delay: Duration) -> (DelayedServices, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        (
            DelayedServices::new(
                WorkTable::default(),
                2 * MIN,
                longest_delay,
                Arc::<ManualClock>::clone(&clock),
            ),
            clock,
        )
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
            assert_eq!(delayed.of(&service(1)).as_ref(), Some(&longest));
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
    fn services_to_which_the_ledger_is_busy_are_counted() {
        let (delayed, _) = delayed();
        let busy = |number, outcome| {
            delayed.observe(&service(number), "b", &answer(outcome));
            delayed.read().busy
        };
        let counts = [busy(1, Outcome::Busy), busy(2, Outcome::Busy), busy(3, Outcome::Refused)];
        assert_eq!(counts, [1, 2, 2]);
        assert_eq!([busy(1, Outcome::NotSent), busy(2, Outcome::Accepted)], [1, 0]);
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
