use std::{collections::HashSet, sync::Arc, time::Duration};

use grid_batch_core::MonotonicTime;
use grid_batch_core::polling::BatchId;
use grid_batch_support::Backoff;
use grid_batch_work::{DueKind, Work, WorkKey, WorkTable};
use log::{info, warn};

/// How many services a warning names besides the oldest.
const NAMED: usize = 4;

/// How many of the services that stand still the store is asked about at once, beginning with the one that has stood
/// still longest.
const CONFIRMED_AT_ONCE: usize = 1_000;

/// The longest time for which a service may still be reported after it has stopped standing still.
const LONGEST_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// A service stands still when its batch takes this many times as long as the batches before.
const TIMES_THE_USUAL: u32 = 20;

/// However fast the ledger usually is, the limit is at least one in this many parts of `warn_after`.
const SHORTEST_PART: u32 = 4;

/// Warnings are repeated at growing intervals, up to this one.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// Warns when a batch of a service has been under way for much longer than usual, so that later or conflicting batches
/// of the service stand still.
///
/// A held batch is not reported, because its hold was reported. A batch that has ended elsewhere, or whose service this
/// instance has given up, is not reported either, because the store is asked first.
#[derive(Debug)]
pub(crate) struct StalledServices {
    table: WorkTable,
    warn_after: Duration,
    next_check: MonotonicTime,
    warning: Option<Warning>,
}

/// The oldest batch of a service that stands still, and since when it has been under way.
#[derive(Debug)]
struct Stalled {
    since: MonotonicTime,
    service_id: Arc<str>,
    batch_id: Arc<str>,
}

/// A warning that was logged and still applies.
#[derive(Debug)]
struct Warning {
    since: MonotonicTime,
    repeat_at: MonotonicTime,
    repeats: u32,
}

impl StalledServices {
    /// Reports services at the latest after `warn_after`.
    pub(crate) fn new(warn_after: Duration, table: WorkTable) -> Self {
        Self { table, warn_after, next_check: MonotonicTime::default(), warning: None }
    }

    /// Records that a batch was held.
    pub(crate) fn held(&self, service_id: &str, batch_id: &str) {
        forget(&mut self.table.lock(), service_id, batch_id);
    }

    /// The services that seem to stand still, the longest first; only some of them if there are many. `None`: it is too
    /// early for another check.
    pub(crate) fn take_suspected(&mut self, now: MonotonicTime) -> Option<Vec<String>> {
        if now < self.next_check {
            return None;
        }
        let work = self.table.lock();
        let limit = limit(&work, self.warn_after);
        let first = stalled(&work, limit, now).into_iter().take(CONFIRMED_AT_ONCE);
        let first: Vec<String> = first.map(|oldest| oldest.service_id.to_string()).collect();
        self.next_check = now.plus(if first.is_empty() {
            limit / 8
        } else {
            (limit / 8).min(LONGEST_CHECK_INTERVAL)
        });
        Some(first)
    }

    /// Forgets the batches of these services that are no longer under way, or not on this instance.
    pub(crate) fn keep_only<I: BatchId>(&self, services: &[String], under_way: &[I]) {
        let is_under_way: HashSet<(&str, &str)> = under_way
            .iter()
            .filter(|batch| !batch.is_held())
            .map(|batch| (batch.get_service_id(), batch.get_id()))
            .collect();
        let mut work = self.table.lock();
        for service_id in services {
            let Some(service) = work.service(service_id) else { continue };
            let ids = service.batches.keys().filter(|id| !is_under_way.contains(&(service_id, id)));
            for batch_id in ids.cloned().collect::<Vec<_>>() {
                forget(&mut work, service_id, &batch_id);
            }
        }
    }

    /// Logs what has changed, and returns how many services stand still.
    pub(crate) fn report(&mut self, now: MonotonicTime) -> usize {
        let work = self.table.lock();
        let limit = limit(&work, self.warn_after);
        let stalled = stalled(&work, limit, now);
        drop(work);
        self.warning = log_change(self.warning.take(), &stalled, limit, now);
        stalled.len()
    }
}

/// Records that this batch does not make its service stand still.
fn forget(work: &mut Work, service_id: &str, batch_id: &str) {
    let Some(service) = work.services.get_mut(service_id) else { return };
    let Some(batch) = service.batches.get_mut(batch_id) else { return };
    if let Some(under_way) = &mut batch.under_way {
        work.due.clear(&mut under_way.since);
    }
    batch.under_way.take_if(|batch| !batch.is_awaited() && batch.newly_accepted.is_none());
    work.remove_unneeded(service_id, Some(batch_id));
}

/// The services that stand still, each with its oldest batch, the longest first.
fn stalled(work: &Work, limit: Duration, now: MonotonicTime) -> Vec<Stalled> {
    let mut services = HashSet::new();
    let under_way = work.due.of(DueKind::UnderWay);
    let late = under_way.take_while(|(since, _)| now.since(*since) >= limit);
    let oldest = late.filter(|(_, key)| services.insert(&key.service_id));
    let stalled = oldest.filter_map(|(since, WorkKey { service_id, batch_id })| {
        let (service_id, batch_id) = (Arc::clone(service_id), batch_id.clone()?);
        Some(Stalled { since, service_id, batch_id })
    });
    stalled.collect()
}

/// How long a batch may take before its service counts as standing still: much longer than this ledger usually takes.
fn limit(work: &Work, warn_after: Duration) -> Duration {
    let usual = work.times.usual_of_ledger();
    let follows = usual.map_or(warn_after, |usual| usual * TIMES_THE_USUAL);
    follows.clamp(warn_after / SHORTEST_PART, warn_after)
}

/// Logs when services begin to stand still, again after growing pauses, and when none stands still any more.
fn log_change(
    warning: Option<Warning>,
    stalled: &[Stalled],
    limit: Duration,
    now: MonotonicTime,
) -> Option<Warning> {
    match (warning, stalled.first()) {
        (None, None) => None,
        (None, Some(_)) => {
            log_stalled(stalled, now);
            Some(Warning { since: now, repeat_at: now.plus(limit), repeats: 0 })
        }
        (Some(warning), Some(_)) if now < warning.repeat_at => Some(warning),
        (Some(Warning { since, repeats, .. }), Some(_)) => {
            log_stalled(stalled, now);
            let repeats = repeats + 1;
            let pause = Backoff { first: limit, longest: LONGEST_PAUSE }.whole_delay(repeats);
            Some(Warning { since, repeat_at: now.plus(pause), repeats })
        }
        (Some(warning), None) => {
            info!(
                seconds = now.since(warning.since).as_secs();
                "no service stands still any more"
            );
            None
        }
    }
}

fn log_stalled(stalled: &[Stalled], now: MonotonicTime) {
    let Some(oldest) = stalled.first() else { return };
    let others: Vec<&str> =
        stalled.iter().skip(1).take(NAMED).map(|other| &*other.service_id).collect();
    warn!(
        services = stalled.len(), oldest = &*oldest.service_id, batch_id = &*oldest.batch_id,
        seconds = now.since(oldest.since).as_secs(), others = others.join(", ").as_str();
        "services stand still: a batch has been under way for much longer than usual; `grid-batch explain BATCH` \
         tells why it waits, and what can be done"
    );
}

#[cfg(test)]
mod tests {
    use grid_batch_work::{PollCause, SeenCommit};

    use super::*;
    use crate::{MonitorOptions, polls::Polls};

    const WARN_AFTER: Duration = Duration::from_secs(120);

    #[derive(Debug, Clone)]
    struct Batch {
        service: &'static str,
        id: &'static str,
        held: bool,
    }

    impl BatchId for Batch {
        fn get_id(&self) -> &str {
            self.id
        }

        fn get_service_id(&self) -> &str {
            self.service
        }

        fn is_held(&self) -> bool {
            self.held
        }
    }

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs(seconds))
    }

    fn services() -> StalledServices {
        StalledServices::new(WARN_AFTER, WorkTable::default())
    }

    fn polls(services: &StalledServices) -> Polls {
        Polls::new(&MonitorOptions::default(), services.table.clone())
    }

    /// Records that the ledger is asked about these batches of one service.
    fn asked(services: &StalledServices, batches: &[Batch], now: MonotonicTime) {
        let ids = batches.iter().map(|batch| (batch.id, batch.held));
        polls(services).asked_about(batches[0].service, ids, PollCause::Schedule, now);
    }

    /// How many services stand still. `None`: it is too early for another check.
    fn check(services: &mut StalledServices, now: MonotonicTime) -> Option<usize> {
        services.take_suspected(now)?;
        Some(services.report(now))
    }

    /// Asks about the batch every 30 s from one time to another, and returns the last count.
    fn ask(services: &mut StalledServices, batch: &Batch, seconds: std::ops::Range<u64>) -> usize {
        let mut count = 0;
        for second in seconds.step_by(30) {
            asked(services, std::slice::from_ref(batch), at(second));
            count = check(services, at(second)).unwrap_or(count);
        }
        count
    }

    const FIRST: Batch = Batch { service: "a", id: "1", held: false };

    #[test]
    fn service_whose_batch_does_not_end_stands_still() {
        let mut services = services();
        assert_eq!(ask(&mut services, &FIRST, 0..120), 0);
        assert_eq!(ask(&mut services, &FIRST, 120..150), 1);
        assert!(services.warning.is_some());
        polls(&services).ended("a", "1", at(150));
        assert_eq!(check(&mut services, at(180)), Some(0));
        assert!(services.warning.is_none());
    }

    #[test]
    fn another_batch_of_the_service_begins_anew() {
        let mut services = services();
        ask(&mut services, &FIRST, 0..120);
        let second = Batch { id: "2", ..FIRST };
        assert_eq!(ask(&mut services, &second, 120..240), 0);
        assert_eq!(ask(&mut services, &second, 240..270), 1);
    }

    #[test]
    fn held_batch_is_not_reported() {
        let mut services = services();
        let held = Batch { held: true, ..FIRST };
        assert_eq!(ask(&mut services, &held, 0..600), 0);
        ask(&mut services, &FIRST, 600..900);
        services.held("a", "1");
        assert_eq!(check(&mut services, at(930)), Some(0));
    }

    #[test]
    fn service_that_was_given_up_does_not_stand_still() {
        let mut services = services();
        let [given_up, other] = [FIRST, Batch { service: "b", id: "2", held: false }];
        for batch in [&given_up, &other] {
            asked(&services, std::slice::from_ref(batch), at(0));
        }
        assert_eq!(services.take_suspected(at(130)).unwrap(), ["a", "b"]);
        services.keep_only(&["a".to_owned(), "b".to_owned()], &[other]);
        assert_eq!(services.report(at(130)), 1);
        services.keep_only::<Batch>(&["b".to_owned()], &[]);
        assert_eq!(check(&mut services, at(132)), Some(0));
        assert!(services.warning.is_none());
    }

    #[test]
    fn limit_follows_what_batches_usually_take() {
        let services = services();
        let limit_after = |took: u64| {
            let mut work = services.table.lock();
            let committed_by = Duration::from_secs(took);
            let cause = PollCause::Trigger;
            let seen = SeenCommit { pending_until: None, committed_by, cause };
            (0..100).for_each(|_| work.times.committed("a", seen));
            limit(&work, WARN_AFTER).as_secs()
        };
        assert_eq!(limit_after(1), 30, "the shortest limit");
        assert_eq!(limit_after(3), 60 - 1, "the average is rounded down");
        assert_eq!(limit_after(60), 120, "the longest limit");
    }

    #[test]
    fn warnings_are_repeated_at_growing_intervals() {
        let mut services = services();
        let mut repeats = Vec::new();
        let mut last = None;
        for second in (0..3_000).step_by(30) {
            asked(&services, &[FIRST], at(second));
            check(&mut services, at(second));
            let next = services.warning.as_ref().map(|warning| warning.repeat_at);
            if next != last {
                repeats.push(second);
                last = next;
            }
        }
        assert_eq!(repeats, [120, 240, 480, 960, 1920]);
    }

    #[test]
    fn late_batch_is_reported_while_others_of_its_service_end() {
        let mut services = services();
        let ids: Vec<String> = (0..40).map(|number: u64| number.to_string()).collect();
        let batch =
            |number: usize| Batch { service: "a", id: ids[number].clone().leak(), held: false };
        let mut counts = Vec::new();
        for number in 1..40 {
            let now = at(number as u64 * 4);
            asked(&services, &[batch(0), batch(number)], now);
            polls(&services).ended("a", batch(number).id, now.plus(Duration::from_secs(1)));
            counts.extend(check(&mut services, now));
        }
        assert_eq!((counts.first(), counts.last()), (Some(&0), Some(&1)));
        // An operator has decided about it, so the ledger is not asked about it any more.
        asked(&services, &[batch(1)], at(200));
        assert_eq!(check(&mut services, at(200)), Some(0));
    }
}
