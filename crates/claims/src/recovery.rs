use std::{sync::Arc, time::Duration};

use grid_batch_core::{ClaimKeeper, Clock, InternalError, Timestamp};
use grid_batch_support::PeriodicThread;
use log::{info, warn};

/// A thread that finds orphaned batches: recorded as being with a submitter, but with none.
///
/// A batch is orphaned when the store marked a round and the answer to that was lost. Such batches
/// are put in doubt, so that evidence decides about them. Dropping this ends the thread.
#[derive(Debug)]
pub struct OrphanRecovery {
    _thread: PeriodicThread,
}

impl OrphanRecovery {
    /// How often orphans are looked for, and how much longer than a submission a batch must have
    /// been with its submitter.
    const INTERVAL: Duration = Duration::from_secs(30);

    /// Starts the thread. No submission may last longer than `longest_submission`.
    pub fn start(
        claims: impl ClaimKeeper + 'static,
        longest_submission: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, InternalError> {
        let minimum_age = longest_submission.saturating_add(Self::INTERVAL);
        let thread = PeriodicThread::start("recovery", Self::INTERVAL, move || {
            recover(&claims, clock.now(), minimum_age);
        })?;
        Ok(Self { _thread: thread })
    }
}

fn recover(claims: &impl ClaimKeeper, now: Timestamp, minimum_age: Duration) {
    let minimum_age = i64::try_from(minimum_age.as_micros()).unwrap_or(i64::MAX);
    let taken_by = Timestamp::from_micros(now.as_micros().saturating_sub(minimum_age));
    match claims.recover(taken_by) {
        Ok(0) => {}
        Ok(count) => info!(batches = count; "orphaned batches are in doubt now"),
        Err(error) => warn!(error:% = error; "cannot look for orphaned batches; retrying later"),
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{BatchError, SystemClock, mocks::MockClaimKeeper};

    use super::*;

    #[test]
    fn only_batches_older_than_a_submission_are_recovered() {
        let mut claims = MockClaimKeeper::new();
        let expected = Timestamp::from_micros(3_000_000);
        claims.expect_recover().once().withf(move |by| *by == expected).returning(|_| Ok(2));
        recover(&claims, Timestamp::from_micros(10_000_000), Duration::from_secs(7));
    }

    #[test]
    fn unlimited_submission_does_not_overflow() {
        let mut claims = MockClaimKeeper::new();
        let error = || BatchError::Unavailable("no connection".to_owned());
        claims.expect_recover().once().returning(move |_| Err(error()));
        recover(&claims, Timestamp::from_micros(-10), Duration::MAX);
    }

    #[test]
    fn dropped_recovery_ends_without_waiting_for_its_interval() {
        let claims = MockClaimKeeper::new();
        let recovery = OrphanRecovery::start(claims, Duration::MAX, Arc::new(SystemClock));
        drop(recovery.unwrap());
    }
}
