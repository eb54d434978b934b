use std::{collections::HashMap, time::Duration};

use grid_batch_core::{AttemptId, MonotonicTime, UnresolvedBatch};

use crate::evidence_schedule::{BatchKey, key};

/// The batches of which an earlier attempt may still arrive at the ledger.
///
/// An attempt cannot arrive any more when the limit has passed since this process first saw a later
/// attempt, because the earlier one had ended by then. A restart or a takeover starts the wait anew,
/// because it is not known then when the earlier attempts ended.
#[derive(Debug)]
pub(crate) struct EarlierAttempts {
    limit: Duration,
    waits: HashMap<BatchKey, Wait>,
    /// The batches whose wait is over, and when evidence is looked for the last time.
    last_looks: Vec<Wait>,
}

#[derive(Debug)]
struct Wait {
    batch: UnresolvedBatch,
    until: MonotonicTime,
}

impl EarlierAttempts {
    /// The greatest number of waits. The wait of a further batch begins when another one is over.
    const MOST: usize = 10_000;

    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, waits: HashMap::new(), last_looks: Vec::new() }
    }

    /// Records that the store returned this batch.
    pub(crate) fn observe(&mut self, batch: &UnresolvedBatch, now: MonotonicTime) {
        let key = key(batch);
        if !batch.earlier_may_arrive {
            self.waits.remove(&key);
            return;
        }
        let is_known = self.waits.get(&key).map(Wait::attempt_id) == Some(batch.attempt_id);
        if !is_known && self.waits.len() < Self::MOST {
            self.waits.insert(key, Wait { batch: batch.clone(), until: now.plus(self.limit) });
        }
    }

    /// Takes the batches of which no earlier attempt can arrive any more, except busy ones, for which an
    /// answer is on its way that may be older than the end of the wait.
    pub(crate) fn take_over(
        &mut self,
        now: MonotonicTime,
        is_busy: impl Fn(&BatchKey) -> bool,
    ) -> Vec<UnresolvedBatch> {
        let over = self.waits.extract_if(|batch, wait| wait.until <= now && !is_busy(batch));
        let over: Vec<UnresolvedBatch> = over.map(|(_, wait)| wait.batch).collect();
        for batch in &over {
            // So that only evidence of a commit has an effect.
            let look = UnresolvedBatch { invalid_reported: true, ..batch.clone() };
            self.add_last_look(look, now.plus(self.limit));
        }
        over
    }

    /// Takes the batches whose last search for evidence is due. Some may have ended: one that ended as
    /// invalid may have been applied after all.
    pub(crate) fn take_last_looks(&mut self, now: MonotonicTime) -> Vec<UnresolvedBatch> {
        let due = self.last_looks.extract_if(.., |look| look.until <= now);
        due.map(|look| look.batch).collect()
    }

    /// When a wait is over or a last look is due next.
    pub(crate) fn next(&self, now: MonotonicTime) -> Option<MonotonicTime> {
        let waits = self.waits.values().chain(&self.last_looks);
        // A wait that is over already is that of a busy batch: the reply wakes the monitor.
        waits.map(|wait| wait.until).filter(|until| *until > now).min()
    }

    fn add_last_look(&mut self, batch: UnresolvedBatch, until: MonotonicTime) {
        if self.last_looks.len() < Self::MOST {
            self.last_looks.push(Wait { batch, until });
        }
    }
}

impl Wait {
    fn attempt_id(&self) -> AttemptId {
        self.batch.attempt_id
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{BatchState, ItemId};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(330);
    const START: Duration = Duration::from_secs(1_000);

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(START).plus(Duration::from_secs(seconds))
    }

    fn second_attempt() -> UnresolvedBatch {
        let (service_id, id) = ("s".parse().unwrap(), ItemId::from_bytes([1; 64]));
        let attempt_id = AttemptId { attempt: 2, epoch: 1 };
        UnresolvedBatch {
            earlier_may_arrive: true,
            ..UnresolvedBatch::new(service_id, id, attempt_id, BatchState::Pending)
        }
    }

    fn over(earlier: &mut EarlierAttempts, seconds: u64) -> usize {
        earlier.take_over(at(seconds), |_| false).len()
    }

    #[test]
    fn wait_is_measured_from_the_first_sight() {
        let mut earlier = EarlierAttempts::new(LIMIT);
        earlier.observe(&second_attempt(), at(0));
        earlier.observe(&second_attempt(), at(100));
        assert_eq!(earlier.next(at(0)), Some(at(330)));
        assert_eq!((over(&mut earlier, 329), over(&mut earlier, 330)), (0, 1));
        assert_eq!(over(&mut earlier, 1_000), 0);
    }

    #[test]
    fn next_attempt_or_epoch_waits_anew() {
        for attempt_id in [AttemptId { attempt: 3, epoch: 1 }, AttemptId { attempt: 2, epoch: 2 }] {
            let mut earlier = EarlierAttempts::new(LIMIT);
            earlier.observe(&second_attempt(), at(0));
            earlier.observe(&UnresolvedBatch { attempt_id, ..second_attempt() }, at(100));
            assert_eq!((over(&mut earlier, 429), over(&mut earlier, 430)), (0, 1));
        }
    }

    #[test]
    fn wait_of_a_busy_batch_ends_when_it_is_free() {
        let mut earlier = EarlierAttempts::new(LIMIT);
        earlier.observe(&second_attempt(), at(0));
        assert!(earlier.take_over(at(400), |(service, _)| service == "s").is_empty());
        assert_eq!(earlier.next(at(400)), None, "a reply wakes the monitor");
        assert_eq!(over(&mut earlier, 401), 1);
    }

    #[test]
    fn batch_is_looked_at_once_more_after_its_wait() {
        let mut earlier = EarlierAttempts::new(LIMIT);
        earlier.observe(&second_attempt(), at(0));
        assert_eq!(over(&mut earlier, 330), 1);
        assert_eq!(earlier.next(at(330)), Some(at(660)));
        assert_eq!(earlier.take_last_looks(at(659)), []);
        let look = UnresolvedBatch { invalid_reported: true, ..second_attempt() };
        assert_eq!(earlier.take_last_looks(at(660)), [look]);
        assert_eq!(earlier.take_last_looks(at(9_999)), []);
    }

    #[test]
    fn number_of_waits_is_limited() {
        let mut earlier = EarlierAttempts::new(LIMIT);
        for number in 0..EarlierAttempts::MOST + 5 {
            let service_id = format!("s{number}").parse().unwrap();
            earlier.observe(&UnresolvedBatch { service_id, ..second_attempt() }, at(0));
        }
        assert_eq!(over(&mut earlier, 330), EarlierAttempts::MOST);
    }
}
