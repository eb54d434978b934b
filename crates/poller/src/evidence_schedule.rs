use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use grid_batch_core::{MonotonicTime, UnresolvedBatch};

/// When to look for evidence about which batches.
///
/// It only spares the store and the ledger. A batch that it forgets is a candidate again when the
/// ledger is next asked for its status.
#[derive(Debug)]
pub(crate) struct EvidenceSchedule {
    /// When the reported batches of a service are candidates again. A reported status alone gives no
    /// reason to look for evidence.
    services: NotBefore<String>,
    /// When a batch is a candidate again.
    batches: NotBefore<BatchKey>,
    /// When a batch that the ledger reports is a candidate again.
    reported: NotBefore<BatchKey>,
    /// Batches to look at even if the ledger is not asked for their status.
    scheduled: BTreeSet<(MonotonicTime, BatchKey)>,
    /// When to look at a batch again because its last search said so. They are in `scheduled`, too.
    again: HashMap<BatchKey, MonotonicTime>,
    /// The time between two looks at the reported batches of a service.
    pause: Duration,
}

/// A service id and a batch id.
pub(crate) type BatchKey = (String, String);

/// The greatest number of scheduled batches.
const MAX_SCHEDULED: usize = 10_000;

impl EvidenceSchedule {
    /// A schedule that makes the reported batches of a service candidates once every `pause`. It
    /// remembers batches for longer than the `longest_interval` between two status requests.
    pub(crate) fn new(pause: Duration, longest_interval: Duration) -> Self {
        let keep = longest_interval.saturating_mul(2).saturating_add(pause);
        Self {
            services: NotBefore::new(keep),
            batches: NotBefore::new(keep),
            reported: NotBefore::new(keep),
            scheduled: BTreeSet::new(),
            again: HashMap::new(),
            pause,
        }
    }

    /// The batches of an answer for which evidence may be needed: those for which it is due, and from time to
    /// time also others that were reported.
    pub(crate) fn candidates(
        &mut self,
        service_id: &str,
        due: &[String],
        reported: impl Iterator<Item = String>,
        now: MonotonicTime,
    ) -> Vec<String> {
        let reported = self.takes_reported(service_id, now).then_some(reported);
        let is_over = |times: &NotBefore<BatchKey>, id: &String| {
            let key = (service_id.to_owned(), id.clone());
            times.get(&key).is_none_or(|not_before| not_before <= now)
        };
        let reported = reported.into_iter().flatten().filter(|id| is_over(&self.reported, id));
        let all = due.iter().cloned().chain(reported);
        all.filter(|id| is_over(&self.batches, id)).collect()
    }

    /// Whether the reported batches of a service are candidates now. Most batches end soon, so this
    /// is first true after one pause.
    fn takes_reported(&mut self, service_id: &str, now: MonotonicTime) -> bool {
        let not_before = self.services.get(service_id);
        let is_due = not_before.is_some_and(|not_before| not_before <= now);
        if is_due || not_before.is_none() {
            self.services.set(service_id.to_owned(), now.plus(self.pause), now);
        }
        is_due
    }

    /// Makes the batch no candidate before `until`.
    pub(crate) fn defer(
        &mut self,
        batch: &UnresolvedBatch,
        until: MonotonicTime,
        now: MonotonicTime,
    ) {
        self.batches.set(key(batch), until, now);
    }

    /// Makes the batch no candidate before `until` as long as the ledger reports it.
    pub(crate) fn defer_reported(
        &mut self,
        batch: &UnresolvedBatch,
        until: MonotonicTime,
        now: MonotonicTime,
    ) {
        self.reported.set(key(batch), until, now);
    }

    /// Schedules a look at the batch.
    pub(crate) fn schedule(&mut self, batch: &UnresolvedBatch, at: MonotonicTime) {
        if self.scheduled.len() < MAX_SCHEDULED {
            self.scheduled.insert((at, key(batch)));
        }
    }

    /// Schedules the next look at a batch after a search, in place of the one after the search before.
    pub(crate) fn schedule_again(&mut self, batch: &UnresolvedBatch, at: MonotonicTime) {
        let key = key(batch);
        if let Some(before) = self.again.remove(&key) {
            self.scheduled.remove(&(before, key.clone()));
        }
        if self.scheduled.len() < MAX_SCHEDULED {
            self.again.insert(key.clone(), at);
            self.scheduled.insert((at, key));
        }
    }

    /// Takes the scheduled batches that are due, by service.
    pub(crate) fn take_scheduled(&mut self, now: MonotonicTime) -> Vec<(String, Vec<String>)> {
        let mut by_service: HashMap<String, Vec<String>> = HashMap::new();
        while let Some((at, _)) = self.scheduled.first()
            && *at <= now
            && let Some((at, key)) = self.scheduled.pop_first()
        {
            if self.again.get(&key) == Some(&at) {
                self.again.remove(&key);
            }
            let (service, batch) = key;
            by_service.entry(service).or_default().push(batch);
        }
        by_service.into_iter().collect()
    }

    pub(crate) fn next_scheduled(&self) -> Option<MonotonicTime> {
        self.scheduled.first().map(|(at, _)| *at)
    }
}

pub(crate) fn key(batch: &UnresolvedBatch) -> BatchKey {
    (batch.service_id.to_string(), batch.batch_id.to_string())
}

/// The earliest times of events. A time that has passed is removed some time later.
#[derive(Debug)]
struct NotBefore<K> {
    times: HashMap<K, MonotonicTime>,
    keep: Duration,
    /// The number of times at which old ones are removed.
    prune_at: usize,
}

impl<K: std::hash::Hash + Eq> NotBefore<K> {
    const FEW: usize = 1_000;

    fn new(keep: Duration) -> Self {
        Self { times: HashMap::new(), keep, prune_at: Self::FEW }
    }

    fn get<Q>(&self, key: &Q) -> Option<MonotonicTime>
    where
        K: std::borrow::Borrow<Q>,
        Q: std::hash::Hash + Eq + ?Sized,
    {
        self.times.get(key).copied()
    }

    fn set(&mut self, key: K, at: MonotonicTime, now: MonotonicTime) {
        self.times.insert(key, at);
        if self.times.len() >= self.prune_at {
            self.times.retain(|_, at| now.since(*at) < self.keep);
            self.prune_at = self.times.len().saturating_mul(2).max(Self::FEW);
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{AttemptId, BatchState, ItemId};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> MonotonicTime {
        MonotonicTime::default().plus(SECOND * seconds)
    }

    fn unresolved(number: u8) -> UnresolvedBatch {
        let (service_id, id) = ("s".parse().unwrap(), ItemId::from_bytes([number; 64]));
        let attempt_id = AttemptId { attempt: 1, epoch: 1 };
        UnresolvedBatch::new(service_id, id, attempt_id, BatchState::InDoubt)
    }

    fn schedule() -> EvidenceSchedule {
        EvidenceSchedule::new(SECOND * 15, SECOND * 60)
    }

    fn candidates(
        schedule: &mut EvidenceSchedule,
        not_reported: &[&str],
        reported: &[&str],
        now: u32,
    ) -> Vec<String> {
        let not_reported: Vec<String> = not_reported.iter().map(ToString::to_string).collect();
        let reported = reported.iter().map(ToString::to_string);
        schedule.candidates("s", &not_reported, reported, at(now))
    }

    #[test]
    fn reported_batches_are_candidates_from_time_to_time() {
        let mut schedule = schedule();
        assert_eq!(candidates(&mut schedule, &["a"], &["b"], 0), ["a"]);
        assert_eq!(candidates(&mut schedule, &["a"], &["b"], 14), ["a"]);
        assert_eq!(candidates(&mut schedule, &["a"], &["b"], 15), ["a", "b"]);
        assert_eq!(candidates(&mut schedule, &[], &["b"], 16), [""; 0]);
        assert_eq!(candidates(&mut schedule, &[], &["b"], 600), ["b"]);
    }

    #[test]
    fn deferred_batch_is_no_candidate_before_its_time() {
        let mut schedule = schedule();
        let id = unresolved(1).batch_id.to_string();
        schedule.defer(&unresolved(1), at(10), at(0));
        assert_eq!(candidates(&mut schedule, &[&id], &[], 9), [""; 0]);
        assert_eq!(candidates(&mut schedule, &[&id], &[], 10), [id.as_str()]);
    }

    #[test]
    fn batch_deferred_while_reported_is_a_candidate_once_it_is_not() {
        let mut schedule = schedule();
        let id = unresolved(1).batch_id.to_string();
        schedule.defer_reported(&unresolved(1), at(60), at(0));
        assert_eq!(candidates(&mut schedule, &[], &[&id], 0), [""; 0]);
        assert_eq!(candidates(&mut schedule, &[], &[&id], 15), [""; 0]);
        assert_eq!(candidates(&mut schedule, &[&id], &[], 16), [id.as_str()]);
        assert_eq!(candidates(&mut schedule, &[], &[&id], 60), [id.as_str()]);
    }

    #[test]
    fn look_after_a_search_replaces_the_one_before() {
        let mut schedule = schedule();
        schedule.schedule(&unresolved(1), at(50));
        for seconds in [20, 30] {
            schedule.schedule_again(&unresolved(1), at(seconds));
        }
        let taken = |schedule: &mut EvidenceSchedule, now| schedule.take_scheduled(at(now)).len();
        assert_eq!([29, 30, 49, 50].map(|now| taken(&mut schedule, now)), [0, 1, 0, 1]);
    }

    #[test]
    fn scheduled_batch_is_taken_once() {
        let mut schedule = schedule();
        schedule.schedule(&unresolved(2), at(30));
        schedule.schedule(&unresolved(1), at(20));
        assert_eq!(schedule.next_scheduled(), Some(at(20)));
        assert_eq!(schedule.take_scheduled(at(19)), []);
        let both = vec![unresolved(1).batch_id.to_string(), unresolved(2).batch_id.to_string()];
        assert_eq!(schedule.take_scheduled(at(30)), [("s".to_owned(), both)]);
        assert_eq!(schedule.take_scheduled(at(30)), []);
    }

    #[test]
    fn old_times_are_removed() {
        let mut times = NotBefore::new(SECOND * 60);
        for number in 0..100_000u32 {
            times.set(number, at(number / 1_000), at(number / 1_000));
        }
        assert!(times.times.len() <= 200_000);
        for number in 0..100_000u32 {
            times.set(number + 1_000_000, at(1_000), at(1_000));
        }
        assert!(times.times.len() <= 100_000, "{}", times.times.len());
    }
}
