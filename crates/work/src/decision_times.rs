use std::time::Duration;

use crate::CommitTimes;

/// When the ledger decides whether a batch is valid, measured from its acceptance. No event reports this decision,
/// which ends an invalid batch. The time is learned for services that had an invalid batch lately: their batches are
/// polled at that time already, not only when a commit is late.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecisionTime {
    time: Duration,
    /// Whether a poll came before the decision, which means that the time is about right.
    was_too_early: bool,
    /// The number of further batches for which it is used.
    batches: u32,
}

/// What the polls of a batch show about its decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenDecision {
    /// The time from its acceptance to the last poll that found it undecided.
    pub undecided_until: Option<Duration>,
    /// The time from its acceptance to the poll that found it decided.
    pub decided_by: Duration,
}

impl CommitTimes {
    /// Records that a batch of the service was accepted.
    pub fn accepted(&mut self, service_id: &str) {
        if let Some(known) = self.services.get_mut(service_id) {
            known.decision = known.decision.and_then(DecisionTime::for_next_batch);
        }
    }

    /// When to poll a batch of the service, if invalid batches are expected of it.
    pub fn expected_decision(&self, service_id: &str) -> Option<Duration> {
        self.services.get(service_id)?.decision.map(|decision| decision.time)
    }

    /// Records that a batch of the service is invalid.
    pub fn invalid(&mut self, service_id: &str, seen: SeenDecision) {
        let known = self.service(service_id);
        let new = DecisionTime { time: seen.decided_by, was_too_early: false, batches: 0 };
        let decision = known.decision.get_or_insert(new);
        decision.batches = DecisionTime::BATCHES;
        decision.learn(seen);
    }

    /// Records that a batch of the service is valid, but not committed yet.
    pub fn valid(&mut self, service_id: &str, seen: SeenDecision) {
        let known = self.services.get_mut(service_id);
        if let Some(decision) = known.and_then(|known| known.decision.as_mut()) {
            decision.learn(seen);
        }
    }
}

impl DecisionTime {
    /// For this many batches after an invalid one, further invalid ones are expected.
    const BATCHES: u32 = 64;

    fn for_next_batch(self) -> Option<Self> {
        let batches = self.batches - 1;
        (batches > 0).then_some(Self { batches, ..self })
    }

    /// If the first poll finds the decision, it may have been made long before. So the next batch is polled earlier,
    /// until a poll comes too early.
    fn learn(&mut self, seen: SeenDecision) {
        let SeenDecision { undecided_until, decided_by } = seen;
        if undecided_until.is_some() {
            (self.time, self.was_too_early) = (decided_by, true);
            return;
        }
        let time = self.time.min(decided_by);
        self.time = if self.was_too_early { time / 16 * 15 } else { time / 4 * 3 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Polls batches that are decided after this time, every tenth as invalid. Returns the average number of polls of a
    /// batch, and the average time from the decision until it was noticed.
    fn poll(times: &mut CommitTimes, decided: Duration, batches: u32) -> (f64, Duration) {
        let (mut polls, mut late) = (0, Duration::ZERO);
        for number in 0..batches {
            times.accepted("a");
            let mut asked = times.expected_decision("a").unwrap();
            let mut undecided_until = None;
            polls += 1;
            while asked < decided {
                undecided_until = Some(asked);
                asked += asked / 4;
                polls += 1;
            }
            late += asked - decided;
            let seen = SeenDecision { undecided_until, decided_by: asked };
            if number % 10 == 0 { times.invalid("a", seen) } else { times.valid("a", seen) }
        }
        (f64::from(polls) / f64::from(batches), late / batches)
    }

    #[test]
    fn decision_is_found_soon_with_few_polls() {
        let mut times = CommitTimes::default();
        assert_eq!(times.expected_decision("a"), None);
        times.invalid("a", SeenDecision { undecided_until: None, decided_by: millis(600) });
        poll(&mut times, millis(100), 20);
        let (polls, late) = poll(&mut times, millis(100), 1_000);
        assert!(polls < 1.5 && late < millis(15), "{polls} polls, {late:?} late");
        let (polls, late) = poll(&mut times, millis(300), 1_000);
        assert!(polls < 1.5 && late < millis(45), "{polls} polls, {late:?} late");
    }

    #[test]
    fn invalid_batch_is_expected_for_some_batches() {
        let mut times = CommitTimes::default();
        times.invalid("a", SeenDecision { undecided_until: None, decided_by: millis(1) });
        assert_eq!(times.expected_decision("a"), Some(Duration::from_micros(750)));
        (1..DecisionTime::BATCHES).for_each(|_| times.accepted("a"));
        assert!(times.expected_decision("a").is_some());
        times.accepted("a");
        assert_eq!(times.expected_decision("a"), None);
    }
}
