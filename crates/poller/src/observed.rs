//! How long this process has observed unresolved batches in their present attempt and state.
//!
//! Whether a batch may be sent again depends on how long it has been in doubt. Only time that this process has measured
//! counts, because a clock may have been set since a time was stored. The wait therefore starts anew after a restart or
//! a takeover.

use std::time::Duration;

use grid_batch_core::MonotonicTime;
use grid_batch_core::evidence::UnresolvedBatch;
use grid_batch_work::{Observed, Restored, Work};

use crate::evidence::search;

/// Records that the batch was read from the store, and returns how long it has been in its attempt and state.
pub(crate) fn see(work: &mut Work, batch: &UnresolvedBatch, now: MonotonicTime) -> Duration {
    let mut entered = work.enter(batch.service_id.as_str());
    if is_restored(batch) {
        let epoch = batch.attempt_id.epoch;
        let new = Restored { epoch, first_seen: now, last_seen: now };
        let seen = entered.service.restored.get_or_insert(new);
        if seen.epoch != epoch {
            (seen.epoch, seen.first_seen) = (epoch, now);
        }
        seen.last_seen = now;
    }
    let (_, search, _) = search(&mut entered, batch, now);
    let first_seen = search.observed.filter(|seen| is_of(seen, batch)).map(|seen| seen.first_seen);
    let UnresolvedBatch { attempt_id, state, since, .. } = *batch;
    search.observed = Some(Observed {
        attempt_id,
        state,
        since,
        waits_for_earlier: waits_for_earlier(batch),
        first_seen: first_seen.unwrap_or(now),
    });
    seen_for(work, batch, now)
}

/// How long the batch has been observed in its attempt and state; zero if it has not been.
///
/// For a batch of a restored database that was never tried, the time of its service is used: any attempt that the
/// database has lost was sent before the restore, for all batches alike. A long queue thus waits once, not once for
/// each batch.
pub(crate) fn seen_for(work: &Work, batch: &UnresolvedBatch, now: MonotonicTime) -> Duration {
    let first_seen = if is_restored(batch) {
        let seen =
            work.service(batch.service_id.as_str()).and_then(|service| service.restored.as_ref());
        seen.filter(|seen| seen.epoch == batch.attempt_id.epoch).map(|seen| seen.first_seen)
    } else {
        let record = work.batch(batch.service_id.as_str(), &batch.batch_id.to_string());
        let seen = record.and_then(|record| record.search.as_ref()?.observed.as_ref());
        seen.filter(|seen| is_of(seen, batch)).map(|seen| seen.first_seen)
    };
    first_seen.map_or(Duration::ZERO, |first_seen| now.since(first_seen))
}

/// A batch that is in doubt but was never tried can only come from a restored database.
fn is_restored(batch: &UnresolvedBatch) -> bool {
    batch.attempt_id.attempt == 0
}

fn waits_for_earlier(batch: &UnresolvedBatch) -> bool {
    batch.invalid_reported && batch.earlier_may_arrive
}

fn is_of(seen: &Observed, batch: &UnresolvedBatch) -> bool {
    (seen.attempt_id, seen.state, seen.since) == (batch.attempt_id, batch.state, batch.since)
        && seen.waits_for_earlier == waits_for_earlier(batch)
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ItemId;
    use grid_batch_core::batches::BatchState;
    use grid_batch_core::ledger::AttemptId;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn batch(number: u64, attempt: u32, epoch: u64, state: BatchState) -> UnresolvedBatch {
        let mut id = [0; 64];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let (service_id, id) = ("s".parse().unwrap(), ItemId::from_bytes(id));
        // Stored times are ignored.
        UnresolvedBatch::new(service_id, id, AttemptId { attempt, epoch }, state)
    }

    fn at(seconds: u32) -> MonotonicTime {
        MonotonicTime::default().plus(SECOND * seconds)
    }

    #[test]
    fn time_starts_when_the_batch_is_first_seen() {
        let mut work = Work::default();
        let batch = batch(1, 1, 1, BatchState::InDoubt);
        assert_eq!(seen_for(&work, &batch, at(100)), Duration::ZERO);
        let times = [100, 107, 190].map(|seconds| see(&mut work, &batch, at(seconds)));
        assert_eq!(times, [0, 7, 90].map(|seconds| SECOND * seconds));
    }

    #[test]
    fn another_attempt_epoch_or_state_starts_anew() {
        use BatchState::{InDoubt, Pending};
        let first = batch(1, 1, 1, InDoubt);
        for other in [batch(1, 2, 1, InDoubt), batch(1, 1, 2, InDoubt), batch(1, 1, 1, Pending)] {
            let mut work = Work::default();
            see(&mut work, &first, at(0));
            assert_eq!(see(&mut work, &other, at(50)), Duration::ZERO, "{other:?}");
            assert_eq!(see(&mut work, &other, at(55)), SECOND * 5, "{other:?}");
            assert_eq!(seen_for(&work, &first, at(55)), Duration::ZERO);
        }
    }

    #[test]
    fn end_of_the_wait_for_an_earlier_attempt_starts_anew() {
        let mut work = Work::default();
        let waits = UnresolvedBatch {
            invalid_reported: true,
            earlier_may_arrive: true,
            ..batch(1, 2, 1, BatchState::InDoubt)
        };
        see(&mut work, &waits, at(0));
        assert_eq!(see(&mut work, &waits, at(330)), SECOND * 330);
        let is_over = UnresolvedBatch { earlier_may_arrive: false, ..waits };
        assert_eq!(see(&mut work, &is_over, at(331)), Duration::ZERO);
    }

    #[test]
    fn restored_batches_of_a_service_wait_together() {
        let mut work = Work::default();
        let restored = |number, epoch| batch(number, 0, epoch, BatchState::InDoubt);
        assert_eq!(see(&mut work, &restored(1, 1), at(0)), Duration::ZERO);
        assert_eq!(see(&mut work, &restored(2, 1), at(30)), SECOND * 30);
        assert_eq!(see(&mut work, &restored(2, 2), at(40)), Duration::ZERO, "taken over");
        assert_eq!(see(&mut work, &restored(3, 2), at(45)), SECOND * 5);
        let tried = batch(3, 1, 2, BatchState::InDoubt);
        assert_eq!(see(&mut work, &tried, at(50)), Duration::ZERO);
    }
}
