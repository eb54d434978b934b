use std::{num::NonZero, thread::available_parallelism, time::Duration};

use grid_batch_support::Backoff;

use crate::SubmitterBuildError;

/// The options of a submitter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitterOptions {
    /// How long to wait when the queue is empty. A [`SubmitterWaker`] ends the wait early.
    ///
    /// [`SubmitterWaker`]: crate::SubmitterWaker
    pub poll_interval: Duration,
    /// Limit on the number of submissions in flight. Above it, the queue is not polled.
    pub concurrency: u32,
    /// The number of threads that send.
    pub worker_threads: usize,
    /// The time limit of one attempt to send. An attempt that reaches it is aborted, and its outcome
    /// is ambiguous. The adapter's own time limit should be shorter.
    pub sending_limit: Duration,
    /// The time limit of a submission with all its attempts, since it was taken. No attempt
    /// starts that could exceed it.
    pub total_limit: Duration,
    /// How long a shutdown waits for attempts in flight. If it is longer than `sending_limit`, no
    /// attempt is aborted.
    pub drain_limit: Duration,
    /// To how many nodes a batch is sent, one after the other, while it does not reach any.
    pub not_sent_attempts: u16,
    /// A warning is logged when the batches of a service were not accepted for this long.
    pub warn_after: Duration,
    /// Limit on the number of outcomes in one call of the group observer.
    pub group_limit: usize,
    /// The delays between calls of a group observer that fails.
    pub observer_backoff: Backoff,
    /// Makes the random part of the delays repeatable.
    pub seed: Option<u64>,
}

impl Default for SubmitterOptions {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(1),
            concurrency: 100,
            worker_threads: available_parallelism().map_or(1, NonZero::get),
            sending_limit: Duration::from_secs(15),
            total_limit: Duration::from_secs(60),
            drain_limit: Duration::from_secs(20),
            not_sent_attempts: 3,
            warn_after: Duration::from_mins(2),
            group_limit: 100,
            observer_backoff: Backoff {
                first: Duration::from_millis(100),
                longest: Duration::from_secs(5),
            },
            seed: None,
        }
    }
}

impl SubmitterOptions {
    pub(crate) fn check(&self) -> Result<(), SubmitterBuildError> {
        let zero = [
            ("poll_interval", self.poll_interval.is_zero()),
            ("concurrency", self.concurrency == 0),
            ("worker_threads", self.worker_threads == 0),
            ("sending_limit", self.sending_limit.is_zero()),
            ("group_limit", self.group_limit == 0),
            ("observer_backoff.first", self.observer_backoff.first.is_zero()),
            ("observer_backoff.longest", self.observer_backoff.longest.is_zero()),
        ];
        if let Some((option, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(SubmitterBuildError::Zero { option });
        }
        if self.total_limit <= self.sending_limit {
            let Self { total_limit, sending_limit, .. } = *self;
            return Err(SubmitterBuildError::Limits { total_limit, sending_limit });
        }
        Ok(())
    }

    pub(crate) fn rng(&self) -> fastrand::Rng {
        grid_batch_support::rng(self.seed)
    }
}
