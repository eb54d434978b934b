use std::{num::NonZero, thread::available_parallelism, time::Duration};

use crate::{Backoff, SubmitterBuildError};

/// How a submitter goes about its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitterOptions {
    /// How long to wait when the queue has nothing, unless a [`SubmitterWaker`] says otherwise.
    ///
    /// [`SubmitterWaker`]: crate::SubmitterWaker
    pub poll_interval: Duration,
    /// At most so many submissions are under way at once; without a place for it, nothing is taken
    /// from the queue.
    pub concurrency: u32,
    /// How many threads the sending has.
    pub worker_threads: usize,
    /// The longest that one sending may take; it is cut off then, and its outcome unknown. An
    /// adapter's own limit should be shorter.
    pub sending_limit: Duration,
    /// The longest that a whole submission may take, with all its sendings and waits: no sending
    /// begins that could not end within it.
    pub total_limit: Duration,
    /// How long a stop waits for what is being sent. Longer than `sending_limit`, and nothing is
    /// cut off.
    pub drain_limit: Duration,
    /// How often a batch is sent to a ledger that says it is busy.
    pub busy_attempts: u16,
    /// How often a batch is sent that never reaches the ledger.
    pub not_sent_attempts: u16,
    /// The waits between sendings. A ledger that asks for longer ones gets them.
    pub retry_backoff: Backoff,
    /// At most so many outcomes are given to the group observer at once.
    pub group_limit: usize,
    /// The waits between tries to tell the group observer.
    pub observer_backoff: Backoff,
    /// Makes the random part of all waits repeatable.
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
            busy_attempts: 10,
            not_sent_attempts: 3,
            retry_backoff: Backoff {
                first: Duration::from_millis(250),
                longest: Duration::from_secs(10),
            },
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
            ("retry_backoff.first", self.retry_backoff.first.is_zero()),
            ("retry_backoff.longest", self.retry_backoff.longest.is_zero()),
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
        self.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed)
    }
}
