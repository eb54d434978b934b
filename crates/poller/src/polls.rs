use std::{collections::HashSet, time::Duration};

use grid_batch_core::MonotonicTime;
use grid_batch_core::polling::PollPace;
use grid_batch_support::Backoff;
use grid_batch_work::{
    BatchWork, Due, DueKind, Entered, Intervals, Poll, PollCause, PollTimes, SeenCommit,
    SeenDecision, ServiceWork, UnderWay, Work, WorkKey, WorkTable,
};

use crate::{MonitorOptions, request_budget::RequestBudget};

/// When to poll the ledger next for each service that has batches under way.
///
/// A service is first polled when its batch is usually committed, then again soon, and less often the longer the batch
/// takes, but at least at core's [`PollPace`] with the poll interval. If the budget is spent, the services that have
/// been due longest come first.
///
/// As long as a service is in the schedule, it has a next poll, whatever happens to its requests.
#[derive(Debug)]
pub(crate) struct Polls {
    table: WorkTable,
    /// Whether the ledger reports batches as valid before they are committed.
    reports_valid: bool,
    intervals: Intervals,
    budget: RequestBudget,
    pace: PollPace,
}

/// Records that the ledger has accepted the batch. Returns whether it is the first since the poller last looked.
pub(crate) fn enter_accepted(work: &mut Work, service_id: &str, batch_id: &str) -> bool {
    let is_first = work.due.count(DueKind::Accepted) == 0;
    if work.due.count(DueKind::Accepted) < Work::CAPACITY {
        let mut entered = work.enter(service_id);
        let (key, batch, due) = entered.batch(batch_id);
        let under_way = batch.under_way.get_or_insert_default();
        let at = MonotonicTime::default();
        due.set(&mut under_way.newly_accepted, DueKind::Accepted, at, key);
    }
    is_first
}

impl Polls {
    pub(crate) fn new(options: &MonitorOptions, table: WorkTable) -> Self {
        Self {
            table,
            reports_valid: false,
            intervals: Intervals {
                shortest: options.shortest_interval.unwrap_or(options.poll_interval),
                longest: options.poll_interval,
            },
            budget: RequestBudget::new(options.requests_per_second),
            pace: options.pace(),
        }
    }

    /// Schedules polls of the batches that the ledger has accepted since the last call.
    pub(crate) fn schedule_accepted(&self, now: MonotonicTime) {
        let mut work = self.table.lock();
        let keys: Vec<_> = work.due.of(DueKind::Accepted).map(|(_, key)| key.clone()).collect();
        for key in keys {
            if let Some(batch_id) = &key.batch_id {
                self.accepted(&mut work, &key.service_id, batch_id, now);
            }
        }
    }

    fn accepted(&self, work: &mut Work, service_id: &str, batch_id: &str, now: MonotonicTime) {
        let Entered { service, due, times, .. } = work.enter(service_id);
        let Some(batch) = service.batches.get_mut(batch_id) else { return };
        let under_way = batch.under_way.get_or_insert_default();
        due.clear(&mut under_way.newly_accepted);
        let since = under_way.since.take();
        *under_way = UnderWay { accepted: Some(now), since, ..UnderWay::default() };
        times.accepted(service_id);
        let mut first = times.poll_times(service_id, self.intervals).first;
        let is_only = awaited(service).nth(1).is_none();
        if is_only && let Some(decision) = self.expected_decision(work, service_id) {
            first = first.min(decision);
        }
        let first = now.plus(first.min(self.pace.interval));
        let next = next_poll(work, service_id).map_or(first, |next| next.min(first));
        set(work, service_id, next, |poll| poll.since = now);
    }

    /// Records that the store has batches of the service. If it is not in the schedule, it is due now.
    pub(crate) fn found(&self, service_id: &str, now: MonotonicTime) {
        found(&mut self.table.lock(), service_id, now);
    }

    /// Takes up to `count` services that are due, as far as the budget allows. Services with a request in flight are
    /// left for later.
    pub(crate) fn take_due(
        &mut self,
        now: MonotonicTime,
        count: usize,
        is_busy: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let count = count.min(self.budget.available(now));
        let mut work = self.table.lock();
        let (mut due, mut busy) = (Vec::new(), Vec::new());
        for key in work.due.due(DueKind::Poll, now) {
            if due.len() == count {
                break;
            }
            let group = if is_busy(&key.service_id) { &mut busy } else { &mut due };
            group.push(key.service_id.to_string());
        }
        for service_id in due.iter().chain(&busy) {
            self.set_next(&mut work, service_id, false, now);
        }
        for service_id in &due {
            if let Some(poll) = poll_mut(&mut work, service_id) {
                poll.has_used_budget = true;
            }
        }
        self.budget.spend(due.len(), now);
        due
    }

    /// Puts back a service that was taken but not polled.
    pub(crate) fn put_back(&self, service_id: &str, now: MonotonicTime) {
        set(&mut self.table.lock(), service_id, now, |_| ());
    }

    /// Records that the ledger is asked about these batches now, which are all batches of the service under way. Each
    /// comes with a flag that says whether it is held. If all are held, the ledger is asked rarely.
    pub(crate) fn asked_about<'a>(
        &self,
        service_id: &str,
        batches: impl Iterator<Item = (&'a str, bool)>,
        cause: PollCause,
        now: MonotonicTime,
    ) {
        let mut work = self.table.lock();
        found(&mut work, service_id, now);
        let (mut ids, mut are_held) = (HashSet::new(), true);
        let mut entered = work.enter(service_id);
        for (batch_id, is_held) in batches {
            let (key, batch, due) = entered.batch(batch_id);
            let under_way = batch.under_way.get_or_insert_default();
            under_way.asked_before = under_way.asked.replace(now);
            if is_held {
                due.clear(&mut under_way.since);
            } else if under_way.since.is_none() {
                due.set(&mut under_way.since, DueKind::UnderWay, now, key);
            }
            ids.insert(batch_id);
            are_held &= is_held;
        }
        let Entered { service, due, .. } = entered;
        service.batches.retain(|batch_id, batch| {
            let is_over =
                |it: &mut UnderWay| it.newly_accepted.is_none() && !ids.contains(&**batch_id);
            if let Some(mut over) = batch.under_way.take_if(is_over) {
                due.clear(&mut over.since);
            }
            batch.is_needed()
        });
        service.asked = Some((now, cause));
        if let Some(poll) = &mut service.poll {
            // A triggered request uses no budget, so the batches that it finds return none.
            poll.has_used_budget &= cause == PollCause::Schedule;
        }
        self.set_next(&mut work, service_id, are_held, now);
    }

    /// Sets the next poll after one that is made now.
    fn set_next(&self, work: &mut Work, service_id: &str, are_held: bool, now: MonotonicTime) {
        let pause = if are_held {
            self.pace.longest.max(self.pace.interval)
        } else {
            self.pause(work, service_id, now)
        };
        let is_new = next_poll(work, service_id).is_none();
        set(work, service_id, now.plus(pause), |poll| {
            if is_new {
                poll.since = now;
            }
        });
    }

    /// How long to wait after a poll that is made now.
    fn pause(&self, work: &Work, service_id: &str, now: MonotonicTime) -> Duration {
        let PollTimes { first, interval } = work.times.poll_times(service_id, self.intervals);
        let pause_of = |accepted: MonotonicTime| {
            let age = now.since(accepted);
            match first.checked_sub(age).filter(|wait| !wait.is_zero()) {
                Some(wait) => wait.min(self.pace.interval),
                None => (age.saturating_sub(first) / 2).min(age / PollPace::PART),
            }
        };
        let service = work.service(service_id);
        let since =
            service.and_then(|service| service.poll.as_ref()).map_or(now, |poll| poll.since);
        let accepted_at = service.into_iter().flat_map(awaited).filter_map(|batch| batch.accepted);
        let pause = accepted_at.map(pause_of).min().unwrap_or_else(|| pause_of(since));
        let pause = pause.min(self.pace.longest).max(interval);
        let until_decision = service
            .and_then(only_undecided)
            .zip(self.expected_decision(work, service_id))
            .and_then(|(accepted, decision)| decision.checked_sub(now.since(accepted)))
            .filter(|wait| !wait.is_zero());
        until_decision.map_or(pause, |wait| pause.min(wait))
    }

    fn expected_decision(&self, work: &Work, service_id: &str) -> Option<Duration> {
        let expected = work.times.expected_decision(service_id);
        expected.map(|decision| decision.max(self.intervals.shortest))
    }

    /// Records that a request for the service failed. It is repeated after increasing delays, however old the batches
    /// are. The delays stay short while a node does not answer, so that its return is noticed. The trigger of the
    /// failed request is not repeated.
    pub(crate) fn failed(&self, service_id: &str, is_outage: bool, now: MonotonicTime) {
        let mut work = self.table.lock();
        if poll_mut(&mut work, service_id).is_none() {
            return;
        }
        let Entered { key, service, due, .. } = work.enter(service_id);
        let Some(poll) = &mut service.poll else { return };
        due.set(&mut poll.failed, DueKind::Failed, now, key);
        let longest = if is_outage { self.pace.outage_pause() } else { self.pace.longest };
        let delay = Backoff { first: self.pace.interval, longest }.whole_delay(poll.failures);
        poll.failures += 1;
        bring_forward(&mut work, service_id, now.plus(delay));
    }

    /// Makes those services due whose last request failed and for which `is_chosen` is true.
    pub(crate) fn retry_failed(&self, is_chosen: impl Fn(&str) -> bool, now: MonotonicTime) {
        let failed: Vec<WorkKey> =
            self.table.lock().due.of(DueKind::Failed).map(|(_, key)| key.clone()).collect();
        let chosen = failed.iter().filter(|key| is_chosen(&key.service_id));
        chosen.for_each(|key| set(&mut self.table.lock(), &key.service_id, now, |_| ()));
    }

    pub(crate) fn succeeded(&self, service_id: &str) {
        let work = &mut *self.table.lock();
        let Some(service) = work.services.get_mut(service_id) else { return };
        if let Some(poll) = &mut service.poll {
            poll.failures = 0;
            work.due.clear(&mut poll.failed);
        }
    }

    /// Records the ledger's answer about these batches. Each comes with a flag that says whether it was reported.
    pub(crate) fn answered<'a>(
        &self,
        service_id: &str,
        batches: impl Iterator<Item = (&'a str, bool)>,
        now: MonotonicTime,
    ) {
        let mut work = self.table.lock();
        for (batch_id, is_reported) in batches {
            let batch = work.batch_mut(service_id, batch_id);
            let Some(batch) = batch.and_then(|batch| batch.under_way.as_mut()) else { continue };
            if is_reported {
                batch.not_reported = None;
            } else {
                batch.not_reported.get_or_insert(now);
            }
        }
    }

    /// Records that the ledger has committed the batch.
    pub(crate) fn committed(&mut self, service_id: &str, batch_id: &str, now: MonotonicTime) {
        let mut work = self.table.lock();
        if let Some(seen) = work.service(service_id).and_then(|it| seen_commit(it, batch_id)) {
            work.times.committed(service_id, seen);
        }
        end(&mut work, &mut self.budget, service_id, batch_id, now);
    }

    /// Records that the ledger has found the batch valid, so that only its commit is awaited.
    pub(crate) fn valid(&mut self, service_id: &str, batch_id: &str) {
        self.reports_valid = true;
        let mut work = self.table.lock();
        let batch = work.batch_mut(service_id, batch_id);
        if let Some(seen) = batch.and_then(decided) {
            work.times.valid(service_id, seen);
        }
    }

    /// Records that the ledger has not reported yet whether the batch of the service is valid. If an invalid batch can
    /// thus be found before its commit would be late, the ledger is asked again soon, and less often the older the
    /// batch is.
    pub(crate) fn undecided(&self, service_id: &str, now: MonotonicTime) {
        let mut work = self.table.lock();
        let is_expected = self.reports_valid && self.expected_decision(&work, service_id).is_some();
        let Some(service) = work.service(service_id).filter(|_| is_expected) else { return };
        let Some(accepted) = only_undecided(service) else { return };
        let pause = (now.since(accepted) / PollPace::PART).max(self.intervals.shortest);
        bring_forward(&mut work, service_id, now.plus(pause));
    }

    /// Records that the ledger has found the batch invalid.
    pub(crate) fn invalid(&mut self, service_id: &str, batch_id: &str, now: MonotonicTime) {
        let mut work = self.table.lock();
        let batch = work.batch_mut(service_id, batch_id);
        if let Some(seen) = batch.and_then(decided) {
            work.times.invalid(service_id, seen);
        }
        end(&mut work, &mut self.budget, service_id, batch_id, now);
    }

    /// The batch has ended.
    pub(crate) fn ended(&mut self, service_id: &str, batch_id: &str, now: MonotonicTime) {
        end(&mut self.table.lock(), &mut self.budget, service_id, batch_id, now);
    }

    /// Records that the batch is not under way until it is submitted again.
    pub(crate) fn left(&mut self, service_id: &str, batch_id: &str, now: MonotonicTime) {
        let mut work = self.table.lock();
        refund_request(&mut work, &mut self.budget, service_id, now);
        if let Some(batch) = work.batch_mut(service_id, batch_id) {
            leave(batch);
        }
    }

    /// Removes the service unless a batch of it is under way.
    pub(crate) fn remove_if_idle(&self, service_id: &str) {
        let mut work = self.table.lock();
        if work.service(service_id).is_some_and(|service| awaited(service).next().is_none()) {
            remove(&mut work, service_id);
        }
    }

    /// Removes the service, because no batch of it is under way any more.
    pub(crate) fn remove(&self, service_id: &str) {
        let mut work = self.table.lock();
        if let Some(service) = work.services.get_mut(service_id) {
            service.batches.values_mut().for_each(|batch| leave(batch));
            service.batches.retain(|_, batch| batch.is_needed());
        }
        remove(&mut work, service_id);
    }

    /// The time until a service may be taken.
    pub(crate) fn wait(&self, now: MonotonicTime) -> Option<Duration> {
        let next = self.table.lock().due.next(DueKind::Poll)?;
        Some(next.since(now).max(self.budget.wait(now)))
    }

    /// The pace at which the store is searched for services that are not in the schedule. It is slower than that of the
    /// schedule, so that the store returns few services that are scheduled already.
    pub(crate) fn store_pace(&self) -> PollPace {
        let services = self.table.lock().due.count(DueKind::Poll);
        let interval = self.pace.interval.max(self.budget.time_for(services) * 2);
        PollPace { interval, longest: self.pace.longest.max(interval) }
    }
}

/// The batches of the service about which the ledger is asked until they have ended.
fn awaited(service: &ServiceWork) -> impl Iterator<Item = &UnderWay> {
    let under_way = service.batches.values().filter_map(|batch| batch.under_way.as_ref());
    under_way.filter(|batch| batch.is_awaited())
}

/// When the only batch was accepted, if the ledger has not reported whether it is valid.
fn only_undecided(service: &ServiceWork) -> Option<MonotonicTime> {
    let mut batches = awaited(service);
    let batch = batches.next().filter(|batch| !batch.is_valid)?;
    batch.accepted.filter(|_| batches.next().is_none())
}

/// When the ledger has committed the batch, if its acceptance is known.
fn seen_commit(service: &ServiceWork, batch_id: &str) -> Option<SeenCommit> {
    let batch = service.batches.get(batch_id)?.under_way.as_ref()?;
    let (accepted, (_, cause)) = (batch.accepted?, service.asked?);
    Some(SeenCommit {
        pending_until: batch.asked_before.map(|time| time.since(accepted)),
        committed_by: batch.asked?.since(accepted),
        cause,
    })
}

/// Records that the ledger has reported whether the batch is valid. The first time, returns when, if the acceptance is
/// known.
fn decided(batch: &mut BatchWork) -> Option<SeenDecision> {
    let batch = batch.under_way.as_mut()?;
    let asked = batch.asked?;
    let was_valid = std::mem::replace(&mut batch.is_valid, true);
    let accepted = batch.accepted.filter(|_| !was_valid)?;
    let undecided_until = batch.asked_before.map(|time| time.since(accepted));
    Some(SeenDecision { undecided_until, decided_by: asked.since(accepted) })
}

/// Stops polling the batch until it is accepted again. The time for which it has been under way is kept.
fn leave(batch: &mut BatchWork) {
    let Some(UnderWay { newly_accepted, since, .. }) = batch.under_way.take() else { return };
    if newly_accepted.is_some() || since.is_some() {
        batch.under_way = Some(UnderWay { newly_accepted, since, ..UnderWay::default() });
    }
}

/// The batch has ended.
fn end(
    work: &mut Work,
    budget: &mut RequestBudget,
    service_id: &str,
    batch_id: &str,
    now: MonotonicTime,
) {
    refund_request(work, budget, service_id, now);
    if let Some(service) = work.services.get_mut(service_id)
        && let Some(batch) = service.batches.get_mut(batch_id)
        && let Some(mut under_way) = batch.under_way.take()
    {
        work.due.clear(&mut under_way.newly_accepted);
        work.due.clear(&mut under_way.since);
    }
    work.remove_unneeded(service_id, Some(batch_id));
}

/// Returns the last request of the service to the budget, because it found an ended batch. The number of such requests
/// is limited by that of the batches.
fn refund_request(
    work: &mut Work,
    budget: &mut RequestBudget,
    service_id: &str,
    now: MonotonicTime,
) {
    if let Some(poll) = poll_mut(work, service_id)
        && std::mem::take(&mut poll.has_used_budget)
    {
        budget.refund(1, now);
    }
}

fn found(work: &mut Work, service_id: &str, now: MonotonicTime) {
    if next_poll(work, service_id).is_none() {
        set(work, service_id, now, |_| ());
    }
}

fn poll_mut<'a>(work: &'a mut Work, service_id: &str) -> Option<&'a mut Poll> {
    work.services.get_mut(service_id)?.poll.as_mut()
}

/// When the service is polled next, if it is in the schedule.
fn next_poll(work: &Work, service_id: &str) -> Option<MonotonicTime> {
    work.service(service_id)?.poll.as_ref()?.due.as_ref().map(Due::at)
}

/// Moves the next poll of the service to this time if it is later.
fn bring_forward(work: &mut Work, service_id: &str, at: MonotonicTime) {
    if let Some(next) = next_poll(work, service_id) {
        set(work, service_id, next.min(at), |_| ());
    }
}

/// Sets the next poll of a service, which is added to the schedule if it is new.
fn set(work: &mut Work, service_id: &str, next: MonotonicTime, change: impl FnOnce(&mut Poll)) {
    let Entered { key, service, due, .. } = work.enter(service_id);
    let new = || Poll { since: next, failures: 0, failed: None, has_used_budget: false, due: None };
    let poll = service.poll.get_or_insert_with(new);
    due.set(&mut poll.due, DueKind::Poll, next, key);
    change(poll);
    if due.count(DueKind::Poll) > Work::CAPACITY {
        let last = due.of(DueKind::Poll).next_back().map(|(_, last)| last.clone());
        // The search of the store finds it again later.
        last.iter().for_each(|last| remove(work, &last.service_id));
    }
}

/// Removes the service from the schedule.
fn remove(work: &mut Work, service_id: &str) {
    if let Some(mut poll) = work.services.get_mut(service_id).and_then(|it| it.poll.take()) {
        work.due.clear(&mut poll.due);
        work.due.clear(&mut poll.failed);
    }
    work.remove_unneeded(service_id, None);
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_millis(1_000_000 + millis))
    }

    fn schedule() -> Polls {
        let shortest_interval = Some(Duration::from_millis(10));
        schedule_with(MonitorOptions { shortest_interval, ..MonitorOptions::default() })
    }

    fn schedule_with(options: MonitorOptions) -> Polls {
        let options = MonitorOptions { requests_per_second: 100, ..options };
        Polls::new(&options, WorkTable::default())
    }

    /// The ledger accepts the only batch of the service.
    fn accept(schedule: &Polls, service: &str, millis: u64) {
        enter_accepted(&mut schedule.table.lock(), service, "1");
        schedule.schedule_accepted(at(millis));
    }

    /// The ledger is asked about the only batch of service "a".
    fn asked_about(schedule: &Polls, cause: PollCause, millis: u64) {
        schedule.asked_about("a", [("1", false)].into_iter(), cause, at(millis));
    }

    fn take(schedule: &mut Polls, millis: u64) -> Vec<String> {
        schedule.take_due(at(millis), usize::MAX, |_| false)
    }

    /// The times until `end` at which the service is polled, if it takes its turn as soon as it is due.
    fn turns(schedule: &mut Polls, end: u64) -> Vec<u64> {
        (0..=end).filter(|millis| !take(schedule, *millis).is_empty()).collect()
    }

    /// The ledger reports the only batch of service "a" as committed.
    fn commit(schedule: &mut Polls, millis: u64) {
        asked_about(schedule, PollCause::Schedule, millis);
        schedule.committed("a", "1", at(millis));
    }

    #[test]
    fn batches_that_the_ledger_does_not_report_are_known() {
        let schedule = schedule();
        let since = |millis, is_reported| {
            asked_about(&schedule, PollCause::Schedule, millis);
            schedule.answered("a", [("1", is_reported)].into_iter(), at(millis));
            let work = schedule.table.lock();
            work.not_reported("a").map(|(_, since)| since).next()
        };
        assert_eq!(
            [since(1, true), since(2, false), since(3, false)],
            [None, Some(at(2)), Some(at(2))]
        );
        assert_eq!([since(4, true), since(5, false)], [None, Some(at(5))]);
        accept(&schedule, "a", 6);
        assert_eq!(schedule.table.lock().not_reported("a").count(), 0);
    }

    #[test]
    fn new_batch_is_asked_for_soon_and_then_less_often() {
        let mut schedule = schedule();
        accept(&schedule, "a", 0);
        let turns = turns(&mut schedule, 600_000);
        assert_eq!(turns[..7], [10, 20, 30, 40, 50, 63, 79]);
        for pair in turns[7..].windows(2) {
            let expected = (pair[0] / 4).min(60_000);
            assert!((expected..=expected + 1).contains(&(pair[1] - pair[0])), "{pair:?}");
        }
    }

    /// Also if the status type does not tell that a batch is committed, so that nothing is known of the ledger.
    #[test]
    fn poll_interval_is_the_pace_by_default() {
        let mut schedule = schedule_with(MonitorOptions::default());
        accept(&schedule, "a", 0);
        assert_eq!(turns(&mut schedule, 6_500), [1_000, 2_000, 3_000, 4_000, 5_000, 6_250]);
        commit(&mut schedule, 6_500);
        schedule.remove("a");
        accept(&schedule, "a", 10_000);
        assert_eq!(turns(&mut schedule, 12_500), [11_000, 12_000]);
    }

    #[test]
    fn polls_follow_how_long_commits_take() {
        let mut schedule = schedule();
        accept(&schedule, "a", 0);
        commit(&mut schedule, 800);
        schedule.remove("a");
        assert_eq!(schedule.wait(at(2_000)), None);
        accept(&schedule, "a", 3_000);
        accept(&schedule, "b", 3_000);
        // A little before 800 ms, and one deviation earlier.
        assert_eq!(schedule.wait(at(3_000)), Some(Duration::from_micros(562_500)));
        assert_eq!(take(&mut schedule, 3_563), ["a", "b"]);
        let next = schedule.wait(at(3_563)).unwrap();
        assert_eq!(next, Duration::from_micros(93_750), "half the deviation");
    }

    #[test]
    fn slow_ledger_is_asked_at_the_poll_interval_at_first() {
        let mut schedule = schedule();
        accept(&schedule, "a", 0);
        commit(&mut schedule, 3_200);
        schedule.remove("a");
        accept(&schedule, "a", 10_000);
        assert_eq!(turns(&mut schedule, 12_500), [11_000, 12_000, 12_375]);
    }

    #[test]
    fn batch_that_was_only_found_says_nothing_about_time() {
        let mut schedule = schedule();
        (0..2).for_each(|_| schedule.found("a", at(0)));
        assert_eq!(take(&mut schedule, 0), ["a"]);
        commit(&mut schedule, 4_000);
        schedule.remove("a");
        accept(&schedule, "b", 4_000);
        assert_eq!(take(&mut schedule, 4_010), ["b"]);
    }

    #[test]
    fn requests_that_find_an_ended_batch_use_no_budget() {
        let mut schedule = schedule();
        for number in 0..50u64 {
            let service = number.to_string();
            accept(&schedule, &service, 0);
            assert_eq!(take(&mut schedule, 10), std::slice::from_ref(&service));
            let batches = [("1", false)].into_iter();
            schedule.asked_about(&service, batches, PollCause::Schedule, at(10));
            schedule.committed(&service, "1", at(10));
            schedule.remove(&service);
        }
    }

    #[test]
    fn schedule_is_never_slower_than_the_store() {
        let stored = |millis: u64| {
            let millis = i64::try_from(millis).unwrap();
            grid_batch_core::Timestamp::from_micros(millis * 1_000)
        };
        for usual in [1, 300, 4_000, 3_600_000] {
            let mut schedule = schedule();
            accept(&schedule, "a", 0);
            commit(&mut schedule, usual);
            // The store has recorded the submission before the monitor heard of it.
            let submitted_at = stored(4_000_000 - 7);
            accept(&schedule, "a", 4_000_000);
            let mut now = 4_000_000;
            for _ in 0..60 {
                now += u64::try_from(schedule.wait(at(now)).unwrap().as_millis()).unwrap() + 1;
                assert_eq!(take(&mut schedule, now), ["a"]);
                let next =
                    now + u64::try_from(schedule.wait(at(now)).unwrap().as_millis()).unwrap();
                let in_store = schedule.pace.next_check(submitted_at, Some(stored(now)));
                assert!(stored(next) <= in_store, "commits take {usual} ms: {next}");
            }
        }
    }

    #[test]
    fn resubmitted_batch_has_the_pace_of_a_new_one() {
        let mut schedule = schedule();
        accept(&schedule, "a", 0);
        assert!(turns(&mut schedule, 600_000).len() > 10);
        asked_about(&schedule, PollCause::Schedule, 600_000);
        accept(&schedule, "a", 600_000);
        assert_eq!(schedule.wait(at(600_000)), Some(SECOND / 100));
        assert_eq!(take(&mut schedule, 600_010), ["a"]);
        asked_about(&schedule, PollCause::Schedule, 600_010);
        assert_eq!(schedule.wait(at(600_010)), Some(SECOND / 100));
    }

    /// Ends the only batch of service "a" as invalid.
    fn refuse(schedule: &mut Polls, millis: u64) {
        asked_about(schedule, PollCause::Schedule, millis);
        schedule.invalid("a", "1", at(millis));
        schedule.remove("a");
    }

    /// A schedule that has learned that events of service "a" come 400 ms after an acceptance.
    fn schedule_with_events() -> Polls {
        let mut schedule = schedule();
        for second in 0..50u64 {
            accept(&schedule, "a", second * 1_000);
            let committed = second * 1_000 + 400;
            asked_about(&schedule, PollCause::Trigger, committed);
            schedule.committed("a", "1", at(committed));
            schedule.remove("a");
        }
        schedule
    }

    /// Takes the turn of service "a" for its only batch.
    fn ask(schedule: &mut Polls, millis: u64) {
        assert_eq!(take(schedule, millis), ["a"]);
        asked_about(schedule, PollCause::Schedule, millis);
    }

    fn wait(schedule: &Polls, millis: u64) -> u128 {
        schedule.wait(at(millis)).unwrap().as_millis()
    }

    #[test]
    fn service_with_an_invalid_batch_is_polled_when_it_is_decided() {
        let mut schedule = schedule_with_events();
        accept(&schedule, "a", 60_000);
        assert_eq!(wait(&schedule, 60_000), 520, "when its commit is late");
        refuse(&mut schedule, 60_100);

        accept(&schedule, "a", 70_000);
        assert_eq!(wait(&schedule, 70_000), 75);
        ask(&mut schedule, 70_075);
        // It is not known whether this ledger reports batches as valid.
        schedule.undecided("a", at(70_080));
        assert_eq!(wait(&schedule, 70_080), 440);
    }

    #[test]
    fn undecided_batch_is_polled_until_it_is_decided() {
        let mut schedule = schedule_with_events();
        accept(&schedule, "a", 60_000);
        asked_about(&schedule, PollCause::Trigger, 60_100);
        schedule.valid("a", "1");
        refuse(&mut schedule, 60_100);
        accept(&schedule, "a", 65_000);
        refuse(&mut schedule, 65_100);

        accept(&schedule, "a", 70_000);
        ask(&mut schedule, 70_075);
        schedule.undecided("a", at(70_080));
        assert_eq!(wait(&schedule, 70_080), 20, "a quarter of its age");
        ask(&mut schedule, 70_100);
        schedule.valid("a", "1");
        assert_eq!(wait(&schedule, 70_100), 420, "when its commit is late");
        schedule.remove("a");
        accept(&schedule, "a", 80_000);
        assert_eq!(wait(&schedule, 80_000), 100);
    }

    #[test]
    fn held_batches_are_asked_for_seldom() {
        let mut schedule = schedule();
        accept(&schedule, "a", 0);
        assert_eq!(take(&mut schedule, 100), ["a"]);
        schedule.asked_about("a", [("1", true)].into_iter(), PollCause::Schedule, at(100));
        assert_eq!(schedule.wait(at(100)), Some(SECOND * 60));
    }

    #[test]
    fn busy_service_is_left_for_later() {
        let mut schedule = schedule();
        schedule.found("a", at(0));
        schedule.found("b", at(0));
        assert_eq!(schedule.take_due(at(0), 9, |service| service == "a"), ["b"]);
        assert_eq!(take(&mut schedule, 100), ["b", "a"]);
    }

    #[test]
    fn failed_request_is_repeated_after_growing_delays() {
        let mut schedule = schedule();
        accept(&schedule, "a", 0);
        let mut now = 400_000;
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(take(&mut schedule, now), ["a"]);
            schedule.failed("a", false, at(now));
            assert_eq!(schedule.wait(at(now)), Some(SECOND * seconds));
            now += u64::from(seconds) * 1_000;
        }
        schedule.succeeded("a");
        assert_eq!(take(&mut schedule, now), ["a"]);
        schedule.failed("a", false, at(now));
        assert_eq!(schedule.wait(at(now)), Some(SECOND));
    }

    #[test]
    fn node_that_does_not_answer_is_asked_again_soon() {
        let mut schedule = schedule();
        accept(&schedule, "a", 0);
        let mut now = 400_000;
        for seconds in [1, 2, 4, 4] {
            assert_eq!(take(&mut schedule, now), ["a"]);
            schedule.failed("a", true, at(now));
            assert_eq!(schedule.wait(at(now)), Some(SECOND * seconds));
            now += u64::from(seconds) * 1_000;
        }
    }

    #[test]
    fn failed_services_of_a_node_are_retried_when_it_is_back() {
        let mut schedule = schedule();
        for service in ["a1", "a2", "b1"] {
            accept(&schedule, service, 0);
        }
        assert_eq!(take(&mut schedule, 100), ["a1", "a2", "b1"]);
        schedule.failed("a1", true, at(100));
        schedule.failed("b1", true, at(100));
        schedule.retry_failed(|service| service.starts_with('a'), at(110));
        assert_eq!(take(&mut schedule, 110), ["a1"]);
    }

    #[test]
    fn two_thousand_services_share_the_budget() {
        const SERVICES: usize = 2_000;
        const SECONDS: usize = 200;
        let mut schedule = schedule();
        let mut turns = HashMap::new();
        for number in 0..SERVICES {
            accept(&schedule, &number.to_string(), 0);
        }
        let mut most_in_a_second = 0;
        for second in 0..SECONDS as u64 {
            let millis = second * 1_000..(second + 1) * 1_000;
            let taken: Vec<String> = millis.flat_map(|now| take(&mut schedule, now)).collect();
            most_in_a_second = most_in_a_second.max(taken.len());
            for service in taken {
                turns.entry(service).or_insert_with(Vec::new).push(second);
            }
        }
        assert!(most_in_a_second <= 110, "{most_in_a_second} requests");
        let longest_pause = |turns: &Vec<u64>| {
            let ends = [0].iter().chain(turns).zip(turns.iter().chain(&[SECONDS as u64]));
            ends.map(|(start, end)| end - start).max()
        };
        let longest = turns.values().filter_map(longest_pause).max();
        // Each has a turn every 20 s until it is old enough to be polled less often.
        assert!(turns.len() == SERVICES && longest <= Some(51), "{}: {longest:?}", turns.len());
    }

    #[test]
    fn store_is_read_at_a_slower_pace_than_the_schedule() {
        let schedule = schedule();
        assert_eq!(schedule.store_pace(), PollPace { interval: SECOND, longest: SECOND * 60 });
        (0..5_000).for_each(|number| accept(&schedule, &number.to_string(), 0));
        let pace = PollPace { interval: SECOND * 100, longest: SECOND * 100 };
        assert_eq!(schedule.store_pace(), pace);
    }

    #[test]
    fn each_batch_of_a_service_has_a_time_until_its_commit() {
        let mut schedule = schedule();
        for number in 0..40u64 {
            let accepted = number * 50;
            enter_accepted(&mut schedule.table.lock(), "a", &number.to_string());
            schedule.schedule_accepted(at(accepted));
            let first = number.saturating_sub(20);
            let ids: Vec<String> = (first..=number).map(|id| id.to_string()).collect();
            let batches = ids.iter().map(|id| (id.as_str(), false));
            schedule.asked_about("a", batches, PollCause::Trigger, at(accepted));
            if number >= 20 {
                // Another batch was accepted 50 ms before, this one a second.
                schedule.committed("a", &first.to_string(), at(accepted));
            }
        }
        schedule.remove("a");
        accept(&schedule, "a", 9_000);
        let first = schedule.table.lock().times.poll_times("a", schedule.intervals).first;
        assert_eq!(first, SECOND + SECOND / 4 + SECOND / 50);
    }

    #[test]
    fn service_stays_while_a_batch_is_under_way() {
        let mut schedule = schedule();
        accept(&schedule, "a", 0);
        let ask = |schedule: &Polls, ids: &[&'static str], millis| {
            let batches = ids.iter().map(|id| (*id, false));
            schedule.asked_about("a", batches, PollCause::Schedule, at(millis));
        };
        ask(&schedule, &["1", "2"], 0);
        schedule.committed("a", "1", at(100));
        schedule.remove_if_idle("a");
        assert!(schedule.wait(at(100)).is_some(), "the other one is under way");
        // One is accepted while a request is in flight that does not name it.
        enter_accepted(&mut schedule.table.lock(), "a", "3");
        schedule.schedule_accepted(at(200));
        schedule.ended("a", "2", at(200));
        schedule.remove_if_idle("a");
        assert!(schedule.wait(at(200)).is_some(), "the third one is under way");
        ask(&schedule, &["3"], 200);
        schedule.committed("a", "3", at(300));
        schedule.remove_if_idle("a");
        assert_eq!(schedule.wait(at(300)), None);
    }

    #[test]
    fn service_leaves_nothing_behind_when_its_batches_have_ended() {
        let mut schedule = schedule();
        accept(&schedule, "a", 0);
        let both = || [("1", false), ("2", false)].into_iter();
        schedule.asked_about("a", both(), PollCause::Schedule, at(0));
        schedule.failed("a", false, at(0));
        schedule.left("a", "2", at(0));
        accept(&schedule, "a", 10);
        schedule.asked_about("a", [("2", true)].into_iter(), PollCause::Schedule, at(20));
        schedule.asked_about("a", both(), PollCause::Schedule, at(30));
        schedule.committed("a", "1", at(30));
        schedule.ended("a", "2", at(30));
        schedule.remove_if_idle("a");
        let work = schedule.table.lock();
        let kinds = [DueKind::Accepted, DueKind::Poll, DueKind::Failed, DueKind::UnderWay];
        assert_eq!(kinds.map(|kind| work.due.count(kind)), [0; 4]);
        assert!(work.services.is_empty());
    }
}
