use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use grid_batch_core::{MonotonicTime, PollPace};

use crate::{
    MonitorOptions,
    batches_under_way::BatchesUnderWay,
    commit_times::{CommitTimes, PollCause, PollTimes},
    decision_times::DecisionTimes,
    request_budget::RequestBudget,
};

/// When to ask the ledger next for the batches of each service that has some under way.
///
/// A service is first asked for when its batch is usually committed, then soon again, and less often the
/// longer the batch takes, but not less often than at core's [`PollPace`] with the poll interval. If the budget
/// is spent, the services that have been due for longest come first.
///
/// A service has a next time as long as it is in the schedule, whatever becomes of its requests.
#[derive(Debug)]
pub(crate) struct PollSchedule {
    services: HashMap<String, ScheduledService>,
    queue: BTreeMap<Turn, String>,
    turns: u64,
    commit_times: CommitTimes,
    decision_times: DecisionTimes,
    /// Whether the ledger says that batches are valid before they are committed.
    reports_valid: bool,
    shortest_interval: Duration,
    budget: RequestBudget,
    pace: PollPace,
}

#[derive(Debug)]
struct ScheduledService {
    /// When its last batch was accepted, or found.
    since: MonotonicTime,
    batches: BatchesUnderWay,
    /// The requests that failed since the last answer.
    failures: u32,
    /// Whether the last request has used the budget.
    has_used_budget: bool,
    turn: Turn,
}

/// When it is a service's turn, and a number that no other turn has.
type Turn = (MonotonicTime, u64);

/// The greatest number of services in the schedule.
const CAPACITY: usize = 1_000_000;

impl PollSchedule {
    pub(crate) fn new(options: &MonitorOptions) -> Self {
        let commit_times = CommitTimes::new(options.shortest_interval, options.poll_interval);
        let budget = RequestBudget::new(options.requests_per_second);
        let (services, queue) = Default::default();
        Self {
            services,
            queue,
            turns: 0,
            commit_times,
            decision_times: DecisionTimes::new(options.shortest_interval),
            reports_valid: false,
            shortest_interval: options.shortest_interval,
            budget,
            pace: options.pace(),
        }
    }

    /// The ledger has accepted a batch of the service.
    pub(crate) fn accepted(&mut self, service_id: &str, now: MonotonicTime) {
        self.decision_times.accepted(service_id);
        let known = self.services.get(service_id);
        let mut first = self.commit_times.poll_times(service_id).first;
        if known.is_none_or(|known| known.batches.is_empty())
            && let Some(decision) = self.decision_times.expected(service_id)
        {
            first = first.min(decision);
        }
        let first = now.plus(first.min(self.pace.interval));
        let next = known.map_or(first, |known| known.turn.0.min(first));
        self.set(service_id, next, |service| {
            service.since = now;
            service.batches.accepted(now);
        });
    }

    /// The store has batches of the service. If it is not in the schedule, it is due now.
    pub(crate) fn found(&mut self, service_id: &str, now: MonotonicTime) {
        if !self.services.contains_key(service_id) {
            self.set(service_id, now, |_| ());
        }
    }

    /// Takes up to `count` services that are due, as far as the budget allows. Those with a request
    /// under way are left for later.
    pub(crate) fn take_due(
        &mut self,
        now: MonotonicTime,
        count: usize,
        is_busy: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let count = count.min(self.budget.available(now));
        let (mut due, mut busy) = (Vec::new(), Vec::new());
        while due.len() < count
            && let Some(first) = self.queue.first_entry()
            && first.key().0 <= now
        {
            let service_id = first.remove();
            let group = if is_busy(&service_id) { &mut busy } else { &mut due };
            group.push(service_id);
        }
        due.iter().chain(&busy).for_each(|service_id| self.asked(service_id, false, now));
        for service_id in &due {
            if let Some(service) = self.services.get_mut(service_id) {
                service.has_used_budget = true;
            }
        }
        self.budget.spend(due.len(), now);
        due
    }

    /// Puts services back that were taken and not asked for.
    pub(crate) fn put_back(&mut self, service_id: &str, now: MonotonicTime) {
        self.set(service_id, now, |_| ());
    }

    /// The ledger is asked for the batches of the service now. If all are held, it is asked seldom.
    pub(crate) fn asked(&mut self, service_id: &str, are_held: bool, now: MonotonicTime) {
        let pause = match are_held {
            true => self.pace.longest.max(self.pace.interval),
            false => self.pause(service_id, now),
        };
        let is_new = !self.services.contains_key(service_id);
        self.set(service_id, now.plus(pause), |service| {
            if is_new {
                service.since = now;
            }
        });
    }

    /// How long to wait after a poll that is made now.
    fn pause(&self, service_id: &str, now: MonotonicTime) -> Duration {
        let PollTimes { first, interval } = self.commit_times.poll_times(service_id);
        let pause_of = |accepted: MonotonicTime| {
            let age = now.since(accepted);
            match first.checked_sub(age).filter(|wait| !wait.is_zero()) {
                Some(wait) => wait.min(self.pace.interval),
                None => (age.saturating_sub(first) / 2).min(age / PollPace::PART),
            }
        };
        let known = self.services.get(service_id);
        let since = known.map_or(now, |service| service.since);
        let accepted_at = known.into_iter().flat_map(|service| service.batches.accepted_at());
        let pause = accepted_at.map(pause_of).min().unwrap_or_else(|| pause_of(since));
        let pause = pause.min(self.pace.longest).max(interval);
        let until_decision = known
            .and_then(|service| service.batches.only_undecided())
            .zip(self.decision_times.expected(service_id));
        let until_decision = until_decision
            .and_then(|(accepted, decision)| decision.checked_sub(now.since(accepted)))
            .filter(|wait| !wait.is_zero());
        until_decision.map_or(pause, |wait| pause.min(wait))
    }

    /// The ledger is asked for these batches now, which are all of the service that are under way.
    pub(crate) fn asked_about<'a>(
        &mut self,
        service_id: &str,
        batch_ids: impl Iterator<Item = &'a str>,
        cause: PollCause,
        now: MonotonicTime,
    ) {
        self.found(service_id, now);
        if let Some(service) = self.services.get_mut(service_id) {
            service.batches.asked_about(batch_ids, cause, now);
            // A request that a trigger leads to uses no budget, and what it finds returns none.
            service.has_used_budget &= cause == PollCause::Schedule;
        }
    }

    /// A request for the service failed: it is repeated after increasing delays, however old its batches are.
    /// The delays stay short while a node does not answer, so that its return is noticed. The trigger of the
    /// request does not lead to another one.
    pub(crate) fn failed(&mut self, service_id: &str, is_outage: bool, now: MonotonicTime) {
        let Some(known) = self.services.get(service_id) else { return };
        let doublings = 2u32.saturating_pow(known.failures);
        let longest = if is_outage { self.pace.outage_pause() } else { self.pace.longest };
        let delay = self.pace.interval.saturating_mul(doublings).min(longest);
        let next = known.turn.0.min(now.plus(delay));
        self.set(service_id, next, |service| service.failures += 1);
    }

    /// Makes the services due whose last request failed and for which this is true.
    pub(crate) fn retry_failed(&mut self, is_chosen: impl Fn(&str) -> bool, now: MonotonicTime) {
        let services = self.services.iter().filter(|(_, service)| service.failures > 0);
        let chosen: Vec<String> =
            services.map(|(id, _)| id).filter(|id| is_chosen(id)).cloned().collect();
        for service_id in chosen {
            self.set(&service_id, now, |_| ());
        }
    }

    pub(crate) fn succeeded(&mut self, service_id: &str) {
        if let Some(service) = self.services.get_mut(service_id) {
            service.failures = 0;
        }
    }

    /// The ledger has committed the batch.
    pub(crate) fn committed(&mut self, service_id: &str, batch_id: &str, now: MonotonicTime) {
        self.refund_request(service_id, now);
        if let Some(service) = self.services.get_mut(service_id)
            && let Some(seen) = service.batches.ended(batch_id)
        {
            self.commit_times.record(service_id, seen);
        }
    }

    /// The ledger has found the batch valid. Now only its commit is awaited.
    pub(crate) fn valid(&mut self, service_id: &str, batch_id: &str) {
        self.reports_valid = true;
        if let Some(service) = self.services.get_mut(service_id)
            && let Some(seen) = service.batches.decided(batch_id)
        {
            self.decision_times.valid(service_id, seen);
        }
    }

    /// The ledger has not said whether the batch of the service is valid. It is asked again soon, and less often the
    /// older the batch is, if that tells of an invalid batch before its commit would be late.
    pub(crate) fn undecided(&mut self, service_id: &str, now: MonotonicTime) {
        let is_expected = self.reports_valid && self.decision_times.expected(service_id).is_some();
        let Some(known) = self.services.get(service_id).filter(|_| is_expected) else { return };
        let Some(accepted) = known.batches.only_undecided() else { return };
        let pause = (now.since(accepted) / PollPace::PART).max(self.shortest_interval);
        let next = known.turn.0.min(now.plus(pause));
        self.set(service_id, next, |_| ());
    }

    /// The ledger has found the batch invalid.
    pub(crate) fn invalid(&mut self, service_id: &str, batch_id: &str, now: MonotonicTime) {
        if let Some(service) = self.services.get_mut(service_id)
            && let Some(seen) = service.batches.decided(batch_id)
        {
            self.decision_times.invalid(service_id, seen);
        }
        self.ended(service_id, batch_id, now);
    }

    /// The batch is not under way any more.
    pub(crate) fn ended(&mut self, service_id: &str, batch_id: &str, now: MonotonicTime) {
        self.refund_request(service_id, now);
        if let Some(service) = self.services.get_mut(service_id) {
            service.batches.ended(batch_id);
        }
    }

    /// Returns the last request of the service to the budget, because it found an ended batch. Such requests are
    /// limited by the number of batches.
    fn refund_request(&mut self, service_id: &str, now: MonotonicTime) {
        if let Some(service) = self.services.get_mut(service_id)
            && std::mem::take(&mut service.has_used_budget)
        {
            self.budget.refund(1, now);
        }
    }

    /// Removes the service unless a batch of it is under way.
    pub(crate) fn remove_if_idle(&mut self, service_id: &str) {
        if self.services.get(service_id).is_some_and(|service| service.batches.is_empty()) {
            self.remove(service_id);
        }
    }

    /// No batch of the service is under way any more.
    pub(crate) fn remove(&mut self, service_id: &str) {
        if let Some(service) = self.services.remove(service_id) {
            self.queue.remove(&service.turn);
        }
    }

    /// The time until a service may be taken.
    pub(crate) fn wait(&self, now: MonotonicTime) -> Option<Duration> {
        let (next, _) = self.queue.first_key_value()?.0;
        Some(next.since(now).max(self.budget.wait(now)))
    }

    /// The pace at which the store is read for services that are not in the schedule. It is slower
    /// than that of the schedule, so that the store returns few others.
    pub(crate) fn store_pace(&self) -> PollPace {
        let interval = self.pace.interval.max(self.budget.time_for(self.services.len()) * 2);
        PollPace { interval, longest: self.pace.longest.max(interval) }
    }

    /// Sets the next time of a service, which is added if it is new, and changes it.
    fn set(
        &mut self,
        service_id: &str,
        next: MonotonicTime,
        change: impl FnOnce(&mut ScheduledService),
    ) {
        self.turns += 1;
        let turn = (next, self.turns);
        let batches = BatchesUnderWay::default();
        let new =
            ScheduledService { since: next, batches, failures: 0, has_used_budget: false, turn };
        let service = self.services.entry(service_id.to_owned()).or_insert(new);
        self.queue.remove(&service.turn);
        service.turn = turn;
        change(service);
        self.queue.insert(turn, service_id.to_owned());
        if self.services.len() > CAPACITY
            && let Some((_, last)) = self.queue.pop_last()
        {
            // It is found again when the store's pace allows it.
            self.services.remove(&last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_millis(1_000_000 + millis))
    }

    fn schedule() -> PollSchedule {
        let options = MonitorOptions { requests_per_second: 100, ..MonitorOptions::default() };
        PollSchedule::new(&options)
    }

    fn take(schedule: &mut PollSchedule, millis: u64) -> Vec<String> {
        schedule.take_due(at(millis), usize::MAX, |_| false)
    }

    /// When the service is asked for until `end`, if it takes a turn as soon as it is due.
    fn turns(schedule: &mut PollSchedule, end: u64) -> Vec<u64> {
        (0..=end).filter(|millis| !take(schedule, *millis).is_empty()).collect()
    }

    /// The ledger reports the only batch of service "a" as committed.
    fn commit(schedule: &mut PollSchedule, millis: u64) {
        schedule.asked_about("a", ["1"].into_iter(), PollCause::Schedule, at(millis));
        schedule.committed("a", "1", at(millis));
    }

    #[test]
    fn new_batch_is_asked_for_soon_and_then_less_often() {
        let mut schedule = schedule();
        schedule.accepted("a", at(0));
        let turns = turns(&mut schedule, 600_000);
        assert_eq!(turns[..7], [10, 20, 30, 40, 50, 63, 79]);
        for pair in turns[7..].windows(2) {
            let expected = (pair[0] / 4).min(60_000);
            assert!((expected..=expected + 1).contains(&(pair[1] - pair[0])), "{pair:?}");
        }
    }

    #[test]
    fn polls_follow_how_long_commits_take() {
        let mut schedule = schedule();
        schedule.accepted("a", at(0));
        commit(&mut schedule, 800);
        schedule.remove("a");
        assert_eq!(schedule.wait(at(2_000)), None);
        schedule.accepted("a", at(3_000));
        schedule.accepted("b", at(3_000));
        // A little before 800 ms, and one deviation earlier.
        assert_eq!(schedule.wait(at(3_000)), Some(Duration::from_micros(562_500)));
        assert_eq!(take(&mut schedule, 3_563), ["a", "b"]);
        let next = schedule.wait(at(3_563)).unwrap();
        assert_eq!(next, Duration::from_micros(93_750), "half the deviation");
    }

    #[test]
    fn slow_ledger_is_asked_at_the_poll_interval_at_first() {
        let mut schedule = schedule();
        schedule.accepted("a", at(0));
        commit(&mut schedule, 3_200);
        schedule.remove("a");
        schedule.accepted("a", at(10_000));
        assert_eq!(turns(&mut schedule, 12_500), [11_000, 12_000, 12_375]);
    }

    #[test]
    fn batch_that_was_only_found_says_nothing_about_time() {
        let mut schedule = schedule();
        (0..2).for_each(|_| schedule.found("a", at(0)));
        assert_eq!(take(&mut schedule, 0), ["a"]);
        commit(&mut schedule, 4_000);
        schedule.remove("a");
        schedule.accepted("b", at(4_000));
        assert_eq!(take(&mut schedule, 4_010), ["b"]);
    }

    #[test]
    fn requests_that_find_an_ended_batch_use_no_budget() {
        let mut schedule = schedule();
        for number in 0..50u64 {
            let service = number.to_string();
            schedule.accepted(&service, at(0));
            assert_eq!(take(&mut schedule, 10), std::slice::from_ref(&service));
            schedule.asked_about(&service, ["1"].into_iter(), PollCause::Schedule, at(10));
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
            schedule.accepted("a", at(0));
            commit(&mut schedule, usual);
            // The store has recorded the submission before the monitor was told.
            let submitted_at = stored(4_000_000 - 7);
            schedule.accepted("a", at(4_000_000));
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
        schedule.accepted("a", at(0));
        assert!(turns(&mut schedule, 600_000).len() > 10);
        schedule.asked_about("a", ["1"].into_iter(), PollCause::Schedule, at(600_000));
        schedule.accepted("a", at(600_000));
        assert_eq!(schedule.wait(at(600_000)), Some(SECOND / 100));
        assert_eq!(take(&mut schedule, 600_010), ["a"]);
        schedule.asked_about("a", ["1"].into_iter(), PollCause::Schedule, at(600_010));
        schedule.asked("a", false, at(600_010));
        assert_eq!(schedule.wait(at(600_010)), Some(SECOND / 100));
    }

    /// Ends the only batch of service "a" as invalid.
    fn refuse(schedule: &mut PollSchedule, millis: u64) {
        schedule.asked_about("a", ["1"].into_iter(), PollCause::Schedule, at(millis));
        schedule.invalid("a", "1", at(millis));
        schedule.remove("a");
    }

    /// A schedule that has learned that the events of service "a" come 400 ms after an acceptance.
    fn schedule_with_events() -> PollSchedule {
        let mut schedule = schedule();
        for second in 0..50u64 {
            schedule.accepted("a", at(second * 1_000));
            let committed = at(second * 1_000 + 400);
            schedule.asked_about("a", ["1"].into_iter(), PollCause::Trigger, committed);
            schedule.committed("a", "1", committed);
            schedule.remove("a");
        }
        schedule
    }

    /// Takes the turn of service "a" for its only batch.
    fn ask(schedule: &mut PollSchedule, millis: u64) {
        assert_eq!(take(schedule, millis), ["a"]);
        schedule.asked_about("a", ["1"].into_iter(), PollCause::Schedule, at(millis));
        schedule.asked("a", false, at(millis));
    }

    fn wait(schedule: &PollSchedule, millis: u64) -> u128 {
        schedule.wait(at(millis)).unwrap().as_millis()
    }

    #[test]
    fn service_with_an_invalid_batch_is_polled_when_it_is_decided() {
        let mut schedule = schedule_with_events();
        schedule.accepted("a", at(60_000));
        assert_eq!(wait(&schedule, 60_000), 520, "when its commit is late");
        refuse(&mut schedule, 60_100);

        schedule.accepted("a", at(70_000));
        assert_eq!(wait(&schedule, 70_000), 75);
        ask(&mut schedule, 70_075);
        // Whether this ledger says that batches are valid is not known.
        schedule.undecided("a", at(70_080));
        assert_eq!(wait(&schedule, 70_080), 440);
    }

    #[test]
    fn undecided_batch_is_polled_until_it_is_decided() {
        let mut schedule = schedule_with_events();
        schedule.accepted("a", at(60_000));
        schedule.asked_about("a", ["1"].into_iter(), PollCause::Trigger, at(60_100));
        schedule.valid("a", "1");
        refuse(&mut schedule, 60_100);
        schedule.accepted("a", at(65_000));
        refuse(&mut schedule, 65_100);

        schedule.accepted("a", at(70_000));
        ask(&mut schedule, 70_075);
        schedule.undecided("a", at(70_080));
        assert_eq!(wait(&schedule, 70_080), 20, "a quarter of its age");
        ask(&mut schedule, 70_100);
        schedule.valid("a", "1");
        assert_eq!(wait(&schedule, 70_100), 420, "when its commit is late");
        schedule.remove("a");
        schedule.accepted("a", at(80_000));
        assert_eq!(wait(&schedule, 80_000), 100);
    }

    #[test]
    fn held_batches_are_asked_for_seldom() {
        let mut schedule = schedule();
        schedule.accepted("a", at(0));
        assert_eq!(take(&mut schedule, 100), ["a"]);
        schedule.asked("a", true, at(100));
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
        schedule.accepted("a", at(0));
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
        schedule.accepted("a", at(0));
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
            schedule.accepted(service, at(0));
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
            schedule.accepted(&number.to_string(), at(0));
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
        // All have a turn every 20 s, until they are old enough to be asked for less often.
        assert!(turns.len() == SERVICES && longest <= Some(51), "{}: {longest:?}", turns.len());
    }

    #[test]
    fn store_is_read_at_a_slower_pace_than_the_schedule() {
        let mut schedule = schedule();
        assert_eq!(schedule.store_pace(), PollPace { interval: SECOND, longest: SECOND * 60 });
        (0..5_000).for_each(|number| schedule.accepted(&number.to_string(), at(0)));
        let pace = PollPace { interval: SECOND * 100, longest: SECOND * 100 };
        assert_eq!(schedule.store_pace(), pace);
    }

    #[test]
    fn each_batch_of_a_service_has_a_time_until_its_commit() {
        let mut schedule = schedule();
        for number in 0..40u64 {
            let accepted = number * 50;
            schedule.accepted("a", at(accepted));
            let first = number.saturating_sub(20);
            let ids: Vec<String> = (first..=number).map(|id| id.to_string()).collect();
            schedule.asked_about(
                "a",
                ids.iter().map(String::as_str),
                PollCause::Trigger,
                at(accepted),
            );
            if number >= 20 {
                // Another batch was accepted 50 ms before, this one a second.
                schedule.committed("a", &first.to_string(), at(accepted));
            }
        }
        schedule.remove("a");
        schedule.accepted("a", at(9_000));
        let first = schedule.commit_times.poll_times("a").first;
        assert_eq!(first, SECOND + SECOND / 4 + SECOND / 50);
    }

    #[test]
    fn service_stays_while_a_batch_is_under_way() {
        let mut schedule = schedule();
        schedule.accepted("a", at(0));
        schedule.asked_about("a", ["1", "2"].into_iter(), PollCause::Schedule, at(0));
        schedule.committed("a", "1", at(100));
        schedule.remove_if_idle("a");
        assert!(schedule.wait(at(100)).is_some(), "the other one is under way");
        // One is accepted while a request is in flight that does not name it.
        schedule.accepted("a", at(200));
        schedule.ended("a", "2", at(200));
        schedule.remove_if_idle("a");
        assert!(schedule.wait(at(200)).is_some(), "the third one is under way");
        schedule.asked_about("a", ["3"].into_iter(), PollCause::Schedule, at(200));
        schedule.committed("a", "3", at(300));
        schedule.remove_if_idle("a");
        assert_eq!(schedule.wait(at(300)), None);
    }
}
