use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use grid_batch_core::{BatchId, MonotonicTime};
use log::{info, warn};

/// The greatest number of services that are watched.
const CAPACITY: usize = 100_000;

/// How many services a warning names beside the oldest.
const NAMED: usize = 4;

/// The store is asked about so many of the services that stand still at once, beginning with the longest time.
const CONFIRMED_AT_ONCE: usize = 1_000;

/// The longest time for which a service is still reported that does not stand still any more.
const LONGEST_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// A service stands still when its batch takes this many times as long as the batches before.
const TIMES_THE_USUAL: u32 = 20;

/// The shortest limit is this part of the longest one, however fast the ledger usually is.
const SHORTEST_PART: u32 = 4;

/// Warnings are repeated at growing intervals, up to this one.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// Warns when a batch of a service has been under way for much longer than usual: what comes after it in
/// the service, or conflicts with it, stands still.
///
/// A held batch is not reported, because its hold was. A batch that has ended elsewhere, or whose service
/// this instance has given up, is not reported either: the store is asked before a service is.
#[derive(Debug)]
pub(crate) struct StalledServices {
    under_way: HashMap<String, Vec<UnderWay>>,
    /// How long batches usually take, as a moving average; `None` before the first has ended.
    usual: Option<Duration>,
    warn_after: Duration,
    /// How long a batch is remembered that is not asked about.
    keep: Duration,
    next_check: MonotonicTime,
    warning: Option<Warning>,
}

/// A batch that is under way.
#[derive(Debug)]
struct UnderWay {
    batch_id: String,
    since: MonotonicTime,
    last_asked: MonotonicTime,
}

/// A warning that was logged and has not ended.
#[derive(Debug)]
struct Warning {
    since: MonotonicTime,
    repeat_at: MonotonicTime,
    pause: Duration,
}

impl StalledServices {
    /// Services are reported at the latest after `warn_after`. A batch under way is asked about at
    /// least every `longest_interval`.
    pub(crate) fn new(warn_after: Duration, longest_interval: Duration) -> Self {
        Self {
            under_way: HashMap::new(),
            usual: None,
            warn_after,
            keep: longest_interval.max(warn_after).saturating_mul(2),
            next_check: MonotonicTime::default(),
            warning: None,
        }
    }

    /// The ledger is asked about these batches, which are all of their services that are under way.
    pub(crate) fn asked<I: BatchId>(&mut self, batches: &[I], now: MonotonicTime) {
        let mut services: HashMap<&str, HashSet<&str>> = HashMap::new();
        for batch in batches {
            let ids = services.entry(batch.get_service_id()).or_default();
            if !batch.is_held() {
                ids.insert(batch.get_id());
            }
        }
        for (service, ids) in services {
            self.asked_service(service, ids, now);
        }
    }

    fn asked_service(&mut self, service: &str, mut ids: HashSet<&str>, now: MonotonicTime) {
        let is_full = self.under_way.len() >= CAPACITY;
        if ids.is_empty() {
            self.under_way.remove(service);
            return;
        }
        if is_full && !self.under_way.contains_key(service) {
            return;
        }
        let known = self.under_way.entry(service.to_owned()).or_default();
        known.retain_mut(|batch| {
            batch.last_asked = now;
            ids.remove(batch.batch_id.as_str())
        });
        let new = |id: &str| UnderWay { batch_id: id.to_owned(), since: now, last_asked: now };
        known.extend(ids.into_iter().map(new));
    }

    /// A batch has ended.
    pub(crate) fn ended(&mut self, service: &str, batch_id: &str, now: MonotonicTime) {
        let Some(ended) = self.remove(service, batch_id) else { return };
        let took = now.since(ended.since);
        self.usual = Some(self.usual.map_or(took, |usual| (usual * 7 + took) / 8));
    }

    /// A batch was held.
    pub(crate) fn held(&mut self, service: &str, batch_id: &str) {
        self.remove(service, batch_id);
    }

    fn remove(&mut self, service: &str, batch_id: &str) -> Option<UnderWay> {
        let batches = self.under_way.get_mut(service)?;
        let index = batches.iter().position(|batch| batch.batch_id == batch_id)?;
        let removed = batches.swap_remove(index);
        if batches.is_empty() {
            self.under_way.remove(service);
        }
        Some(removed)
    }

    /// The services that seem to stand still, those for the longest time first: only a part if they are many.
    /// `None`: it is too early for another look. A service is not forgotten while a request for it waits.
    pub(crate) fn take_suspected(
        &mut self,
        now: MonotonicTime,
        waits_for_request: impl Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        if now < self.next_check {
            return None;
        }
        let keep = self.keep;
        self.under_way.retain(|service, batches| {
            let last_asked = batches.iter().map(|batch| batch.last_asked).max();
            last_asked.is_some_and(|last| now.since(last) < keep) || waits_for_request(service)
        });
        let first = self.stalled(now).into_iter().take(CONFIRMED_AT_ONCE);
        let first: Vec<String> = first.map(|(service, _)| service.to_owned()).collect();
        let limit = self.limit() / 8;
        self.next_check = now.plus(match first.is_empty() {
            true => limit,
            false => limit.min(LONGEST_CHECK_INTERVAL),
        });
        Some(first)
    }

    /// Forgets the batches of these services that are not under way any more, or not for this instance.
    pub(crate) fn keep_only<I: BatchId>(&mut self, services: &[String], under_way: &[I]) {
        let is_under_way: HashSet<(&str, &str)> = under_way
            .iter()
            .filter(|batch| !batch.is_held())
            .map(|batch| (batch.get_service_id(), batch.get_id()))
            .collect();
        for service in services {
            let Some(batches) = self.under_way.get_mut(service) else { continue };
            batches.retain(|batch| is_under_way.contains(&(service, &batch.batch_id)));
            if batches.is_empty() {
                self.under_way.remove(service);
            }
        }
    }

    /// Logs what has changed, and returns how many services stand still.
    pub(crate) fn report(&mut self, now: MonotonicTime) -> usize {
        let warning = self.warning.take();
        let stalled = self.stalled(now);
        let count = stalled.len();
        self.warning = log_change(warning, &stalled, self.limit(), now);
        count
    }

    /// The services that stand still, each with its oldest batch, those for the longest time first.
    fn stalled(&self, now: MonotonicTime) -> Vec<(&str, &UnderWay)> {
        let limit = self.limit();
        let oldest = self.under_way.iter().filter_map(|(service, batches)| {
            let oldest = batches.iter().min_by_key(|batch| batch.since)?;
            (now.since(oldest.since) >= limit).then_some((service.as_str(), oldest))
        });
        let mut stalled: Vec<_> = oldest.collect();
        stalled.sort_unstable_by_key(|(service, batch)| (batch.since, *service));
        stalled
    }

    /// How long a batch may take before its service stands still: longer than this ledger usually
    /// takes.
    fn limit(&self) -> Duration {
        let follows = self.usual.map_or(self.warn_after, |usual| usual * TIMES_THE_USUAL);
        follows.clamp(self.warn_after / SHORTEST_PART, self.warn_after)
    }
}

/// Logs when services begin to stand still, again after growing pauses, and when none does any more.
fn log_change(
    warning: Option<Warning>,
    stalled: &[(&str, &UnderWay)],
    limit: Duration,
    now: MonotonicTime,
) -> Option<Warning> {
    match (warning, stalled.first()) {
        (None, None) => None,
        (None, Some(_)) => {
            log_stalled(stalled, now);
            Some(Warning { since: now, repeat_at: now.plus(limit), pause: limit })
        }
        (Some(warning), Some(_)) if now < warning.repeat_at => Some(warning),
        (Some(Warning { since, pause, .. }), Some(_)) => {
            log_stalled(stalled, now);
            let pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
            Some(Warning { since, repeat_at: now.plus(pause), pause })
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

fn log_stalled(stalled: &[(&str, &UnderWay)], now: MonotonicTime) {
    let Some((oldest, batch)) = stalled.first() else { return };
    let others: Vec<&str> =
        stalled.iter().skip(1).take(NAMED).map(|(service, _)| *service).collect();
    warn!(
        services = stalled.len(), oldest = *oldest, batch_id = batch.batch_id.as_str(),
        seconds = now.since(batch.since).as_secs(), others = others.join(", ").as_str();
        "services stand still: a batch has been under way for much longer than usual; `grid-batch show` \
         shows what is known of a batch, `grid-batch decide` ends one that nothing else will end"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

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
        StalledServices::new(WARN_AFTER, Duration::from_secs(60))
    }

    /// How many services stand still. `None`: it is too early for another look.
    fn check(
        services: &mut StalledServices,
        now: MonotonicTime,
        waits_for_request: impl Fn(&str) -> bool,
    ) -> Option<usize> {
        services.take_suspected(now, waits_for_request)?;
        Some(services.report(now))
    }

    /// Asks about the batch every 30 s from one time to another, and returns the last count.
    fn ask(services: &mut StalledServices, batch: &Batch, seconds: std::ops::Range<u64>) -> usize {
        let mut count = 0;
        for second in seconds.step_by(30) {
            services.asked(std::slice::from_ref(batch), at(second));
            count = check(services, at(second), |_| false).unwrap_or(count);
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
        services.ended("a", "1", at(150));
        assert_eq!(check(&mut services, at(180), |_| false), Some(0));
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
        assert_eq!(check(&mut services, at(930), |_| false), Some(0));
    }

    #[test]
    fn batch_that_is_asked_about_no_longer_is_forgotten() {
        let mut services = services();
        assert_eq!(ask(&mut services, &FIRST, 0..180), 1);
        assert_eq!(check(&mut services, at(420), |_| false), Some(0));
        assert!(services.under_way.is_empty());
    }

    #[test]
    fn service_that_was_given_up_does_not_stand_still() {
        let mut services = services();
        let [given_up, other] = [FIRST, Batch { service: "b", id: "2", held: false }];
        services.asked(&[given_up, other.clone()], at(0));
        assert_eq!(services.take_suspected(at(130), |_| false).unwrap(), ["a", "b"]);
        services.keep_only(&["a".to_owned(), "b".to_owned()], &[other]);
        assert_eq!(services.report(at(130)), 1);
        services.keep_only::<Batch>(&["b".to_owned()], &[]);
        assert_eq!(check(&mut services, at(132), |_| false), Some(0));
        assert!(services.warning.is_none() && services.under_way.is_empty());
    }

    #[test]
    fn limit_follows_what_batches_usually_take() {
        let mut services = services();
        let mut begins = 0;
        let mut limit_after = |took: u64| {
            for _ in 0..100 {
                services.asked(&[FIRST], at(begins));
                services.ended("a", "1", at(begins + took));
                begins += took;
            }
            services.limit().as_secs()
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
            services.asked(&[FIRST], at(second));
            check(&mut services, at(second), |_| false);
            let next = services.warning.as_ref().map(|warning| warning.repeat_at);
            if next != last {
                repeats.push(second);
                last = next;
            }
        }
        assert_eq!(repeats, [120, 240, 480, 960, 1920]);
    }

    #[test]
    fn batch_whose_request_waits_is_not_forgotten() {
        let mut services = services();
        assert_eq!(ask(&mut services, &FIRST, 0..180), 1);
        assert_eq!(check(&mut services, at(420), |service| service == "a"), Some(1));
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
            services.asked(&[batch(0), batch(number)], now);
            services.ended("a", batch(number).id, now.plus(Duration::from_secs(1)));
            counts.extend(check(&mut services, now, |_| false));
        }
        assert_eq!((counts.first(), counts.last()), (Some(&0), Some(&1)));
        // It was decided about, so the ledger is not asked about it any more.
        services.asked(&[batch(1)], at(200));
        assert_eq!(check(&mut services, at(200), |_| false), Some(0));
    }
}
