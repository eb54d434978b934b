use std::{collections::HashMap, time::Duration};

use grid_batch_core::{AttemptId, BatchState, MonotonicTime, Timestamp, UnresolvedBatch};

use crate::evidence_schedule::{BatchKey, key};

/// How long this process has seen unresolved batches in their present attempt and state.
///
/// Whether a batch may be sent again depends on how long it has been in doubt. Only time that this
/// process has measured counts, because a clock may have been set since a time was stored. So after a
/// restart or a takeover the wait starts anew.
#[derive(Debug)]
pub(crate) struct ObservedBatches {
    batches: HashMap<BatchKey, Observation>,
    /// The services of restored batches.
    services: HashMap<String, ServiceObservation>,
    /// How long a batch is remembered after it was last seen.
    keep: Duration,
    /// The number of batches at which old ones are removed.
    prune_at: usize,
}

#[derive(Debug)]
struct Observation {
    attempt_id: AttemptId,
    state: BatchState,
    /// Only compared with the batch's: it changes when the batch enters its state again.
    since: Timestamp,
    /// The ledger reported it as invalid, and an earlier attempt of it may still arrive. What the ledger reports after
    /// that wait decides about it, so its time starts anew.
    waits_for_earlier: bool,
    first_seen: MonotonicTime,
    last_seen: MonotonicTime,
}

/// A service in its present epoch, which a restored database has raised.
#[derive(Debug)]
struct ServiceObservation {
    epoch: u64,
    first_seen: MonotonicTime,
    last_seen: MonotonicTime,
}

impl ObservedBatches {
    const FEW: usize = 1_000;

    pub(crate) fn new(keep: Duration) -> Self {
        Self { batches: HashMap::new(), services: HashMap::new(), keep, prune_at: Self::FEW }
    }

    /// Records that the batch was read from the store, and returns how long it has been like this.
    pub(crate) fn see(&mut self, batch: &UnresolvedBatch, now: MonotonicTime) -> Duration {
        if is_restored(batch) {
            self.see_service(batch, now);
        }
        let seen_for = self.seen_for(batch, now);
        let UnresolvedBatch { attempt_id, state, since, .. } = *batch;
        let first_seen = match self.batches.get(&key(batch)) {
            Some(seen) if seen.is_of(batch) => seen.first_seen,
            _ => now,
        };
        let waits_for_earlier = waits_for_earlier(batch);
        let observation =
            Observation { attempt_id, state, since, waits_for_earlier, first_seen, last_seen: now };
        self.batches.insert(key(batch), observation);
        if self.batches.len() >= self.prune_at {
            let keep = self.keep;
            self.batches.retain(|_, seen| now.since(seen.last_seen) < keep);
            self.services.retain(|_, seen| now.since(seen.last_seen) < keep);
            self.prune_at = self.batches.len().saturating_mul(2).max(Self::FEW);
        }
        seen_for
    }

    fn see_service(&mut self, batch: &UnresolvedBatch, now: MonotonicTime) {
        let epoch = batch.attempt_id.epoch;
        let new = ServiceObservation { epoch, first_seen: now, last_seen: now };
        let seen = self.services.entry(batch.service_id.to_string()).or_insert(new);
        if seen.epoch != epoch {
            (seen.epoch, seen.first_seen) = (epoch, now);
        }
        seen.last_seen = now;
    }

    /// How long the batch has been seen like this; zero if it was not.
    ///
    /// What was sent in the time that a restored database has lost was sent before its mark, for all
    /// batches of a service alike. So the time of a batch that was never tried is that of its service:
    /// a long queue waits once, not once for each batch.
    pub(crate) fn seen_for(&self, batch: &UnresolvedBatch, now: MonotonicTime) -> Duration {
        if is_restored(batch) {
            let seen = self.services.get(batch.service_id.as_str());
            let seen = seen.filter(|seen| seen.epoch == batch.attempt_id.epoch);
            return seen.map_or(Duration::ZERO, |seen| now.since(seen.first_seen));
        }
        match self.batches.get(&key(batch)) {
            Some(seen) if seen.is_of(batch) => now.since(seen.first_seen),
            _ => Duration::ZERO,
        }
    }
}

/// Only a restored database has batches in doubt that were never tried.
fn is_restored(batch: &UnresolvedBatch) -> bool {
    batch.attempt_id.attempt == 0
}

fn waits_for_earlier(batch: &UnresolvedBatch) -> bool {
    batch.invalid_reported && batch.earlier_may_arrive
}

impl Observation {
    fn is_of(&self, batch: &UnresolvedBatch) -> bool {
        (self.attempt_id, self.state, self.since) == (batch.attempt_id, batch.state, batch.since)
            && self.waits_for_earlier == waits_for_earlier(batch)
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ItemId;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn batch(number: u64, attempt: u32, epoch: u64, state: BatchState) -> UnresolvedBatch {
        let mut id = [0; 64];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let (service_id, id) = ("s".parse().unwrap(), ItemId::from_bytes(id));
        // Stored times do not count.
        UnresolvedBatch::new(service_id, id, AttemptId { attempt, epoch }, state)
    }

    fn at(seconds: u32) -> MonotonicTime {
        MonotonicTime::default().plus(SECOND * seconds)
    }

    #[test]
    fn time_starts_when_the_batch_is_first_seen() {
        let mut observed = ObservedBatches::new(SECOND * 60);
        let batch = batch(1, 1, 1, BatchState::InDoubt);
        assert_eq!(observed.seen_for(&batch, at(100)), Duration::ZERO);
        let times = [100, 107, 190].map(|seconds| observed.see(&batch, at(seconds)));
        assert_eq!(times, [0, 7, 90].map(|seconds| SECOND * seconds));
    }

    #[test]
    fn another_attempt_epoch_or_state_starts_anew() {
        use BatchState::{InDoubt, Pending};
        let first = batch(1, 1, 1, InDoubt);
        for other in [batch(1, 2, 1, InDoubt), batch(1, 1, 2, InDoubt), batch(1, 1, 1, Pending)] {
            let mut observed = ObservedBatches::new(SECOND * 60);
            observed.see(&first, at(0));
            assert_eq!(observed.see(&other, at(50)), Duration::ZERO, "{other:?}");
            assert_eq!(observed.see(&other, at(55)), SECOND * 5, "{other:?}");
            assert_eq!(observed.seen_for(&first, at(55)), Duration::ZERO);
        }
    }

    #[test]
    fn end_of_the_wait_for_an_earlier_attempt_starts_anew() {
        let mut observed = ObservedBatches::new(SECOND * 60);
        let waits = UnresolvedBatch {
            invalid_reported: true,
            earlier_may_arrive: true,
            ..batch(1, 2, 1, BatchState::InDoubt)
        };
        observed.see(&waits, at(0));
        assert_eq!(observed.see(&waits, at(330)), SECOND * 330);
        let is_over = UnresolvedBatch { earlier_may_arrive: false, ..waits };
        assert_eq!(observed.see(&is_over, at(331)), Duration::ZERO);
    }

    #[test]
    fn restored_batches_of_a_service_wait_together() {
        let mut observed = ObservedBatches::new(SECOND * 60);
        let restored = |number, epoch| batch(number, 0, epoch, BatchState::InDoubt);
        assert_eq!(observed.see(&restored(1, 1), at(0)), Duration::ZERO);
        assert_eq!(observed.see(&restored(2, 1), at(30)), SECOND * 30);
        assert_eq!(observed.see(&restored(2, 2), at(40)), Duration::ZERO, "taken over");
        assert_eq!(observed.see(&restored(3, 2), at(45)), SECOND * 5);
        let tried = batch(3, 1, 2, BatchState::InDoubt);
        assert_eq!(observed.see(&tried, at(50)), Duration::ZERO);
    }

    #[test]
    fn batches_that_are_not_seen_any_more_are_removed() {
        let mut observed = ObservedBatches::new(SECOND * 60);
        for number in 0..10_000 {
            let seconds = u32::try_from(number).unwrap();
            observed.see(&batch(number, 1, 1, BatchState::Pending), at(seconds));
        }
        assert!(observed.batches.len() <= ObservedBatches::FEW, "{}", observed.batches.len());
    }
}
