use std::time::Duration;

use grid_batch_core::batches::BatchState;
use grid_batch_core::evidence::UnresolvedBatch;
use grid_batch_core::ledger::LedgerFacts;
use grid_batch_core::polling::PollPace;
use grid_batch_support::Backoff;
use thiserror::Error;

use crate::environment;

/// The environment variable that [`MonitorOptions::with_environment`] reads.
pub const POLL_INTERVAL_VARIABLE: &str = "GRID_BATCH_POLL_INTERVAL";

/// The options of a polling monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorOptions {
    /// The time from the acceptance of a batch to the first request for its status, and between further requests, unless
    /// an event triggers one. It is also how often to search the store for pending batches that were not reported to the
    /// monitor.
    pub poll_interval: Duration,
    /// If set and batches are usually committed sooner than after `poll_interval`, requests are sent when they usually
    /// are, but at least this time apart. Until that time is known, requests are this time apart.
    pub shortest_interval: Option<Duration>,
    /// The longest time between two requests for the status of a batch. They are further apart the older the batch is.
    pub longest_interval: Duration,
    /// The shortest time between the starts of two status requests for one service.
    pub trigger_gap: Duration,
    /// Limit on the number of status requests per second, not counting those that are triggered.
    pub requests_per_second: u32,
    /// Limit on the number of batches in one request.
    pub batch_limit: usize,
    /// The time limit of one request to a ledger. The reader's own limit should be shorter.
    pub answer_limit: Duration,
    /// How long a shutdown waits for requests in flight, and for a store that fails.
    pub drain_limit: Duration,
    /// The number of threads that send requests.
    pub worker_threads: usize,
    /// The delays between calls of a store that fails.
    pub store_backoff: Backoff,
    /// Makes the random part of the delays repeatable.
    pub seed: Option<u64>,

    /// Evidence is searched when a batch has been pending or valid for this long. Before that, it is searched only if
    /// the ledger does not report the batch, and absence does not count.
    pub quiet_after: Duration,
    /// The facts of the ledger. Evidence that they do not allow is treated as inconclusive. `None`: all evidence
    /// counts.
    pub facts: Option<LedgerFacts>,
    /// Evidence of absence is not trusted before this time, because an aborted submission may still arrive. This time
    /// and the next three are measured from when the monitor first sees the batch in its attempt and state.
    pub believe_absence_after: Duration,
    /// The same for a batch of a list that nothing shows to have arrived.
    pub believe_listed_absence_after: Duration,
    /// The inconclusive policy applies when evidence has been inconclusive for this long.
    pub hold_after: Duration,
    /// A batch that the ledger has but does not apply is held after this time.
    pub give_up_after: Duration,
    /// A batch that is absent after this many attempts is held.
    pub max_attempts: u32,
    /// A warning is logged at the latest when a batch of a service is under way and none of its batches has ended for
    /// this long.
    pub warn_after: Duration,
    /// How long a request that a submitter gave up may still arrive at the ledger. It is measured from when the monitor
    /// first sees the present attempt. Until then, a batch with an earlier attempt that may arrive does not end as
    /// invalid.
    pub late_arrival_limit: Duration,
}

/// What happens to a batch when evidence stays inconclusive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum InconclusivePolicy {
    /// The batch is held until an operator decides.
    #[default]
    Hold,
    /// The batch is submitted again. A ledger that has it and does not detect duplicates applies it
    /// twice.
    Resubmit,
}

/// Why options are invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MonitorOptionsError {
    /// An option is zero.
    #[error("the monitor's {option} is zero; it must be greater")]
    Zero {
        /// The option.
        option: &'static str,
    },
    /// The value of an environment variable is invalid.
    #[error("{variable} is {value:?}; it must be {rule}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What the value must be.
        rule: &'static str,
    },
}

impl Default for MonitorOptions {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(1),
            shortest_interval: None,
            longest_interval: Duration::from_mins(1),
            trigger_gap: Duration::from_millis(20),
            requests_per_second: 500,
            batch_limit: 1_000,
            answer_limit: Duration::from_secs(30),
            drain_limit: Duration::from_secs(10),
            worker_threads: 1,
            store_backoff: Backoff {
                first: Duration::from_millis(250),
                longest: Duration::from_secs(30),
            },
            seed: None,
            quiet_after: Duration::from_mins(1),
            facts: None,
            believe_absence_after: Duration::from_secs(30),
            believe_listed_absence_after: Duration::from_secs(330),
            hold_after: Duration::from_mins(2),
            give_up_after: Duration::from_hours(1),
            max_attempts: 10,
            warn_after: Duration::from_mins(2),
            late_arrival_limit: Duration::from_secs(330),
        }
    }
}

impl MonitorOptions {
    /// Takes the poll interval from [`POLL_INTERVAL_VARIABLE`], if it is set: seconds, or a number
    /// with a unit, such as `500ms`, `2s` or `1m`.
    pub fn with_environment(self) -> Result<Self, MonitorOptionsError> {
        let Some(value) = std::env::var_os(POLL_INTERVAL_VARIABLE) else { return Ok(self) };
        let poll_interval = environment::duration(POLL_INTERVAL_VARIABLE, &value)?;
        Ok(Self { poll_interval, ..self })
    }

    pub(crate) fn check(&self) -> Result<(), MonitorOptionsError> {
        check_not_zero(&[
            ("poll_interval", self.poll_interval.is_zero()),
            ("shortest_interval", self.shortest_interval.is_some_and(|it| it.is_zero())),
            ("longest_interval", self.longest_interval.is_zero()),
            ("requests_per_second", self.requests_per_second == 0),
            ("batch_limit", self.batch_limit == 0),
            ("answer_limit", self.answer_limit.is_zero()),
            ("warn_after", self.warn_after.is_zero()),
            ("worker_threads", self.worker_threads == 0),
            ("store_backoff", self.store_backoff.is_zero()),
            ("max_attempts", self.max_attempts == 0),
        ])
    }

    /// How long the table keeps records whose end is not reported: twice the longest time between two reads of an
    /// unresolved batch or between two warnings.
    pub(crate) fn keep(&self) -> Duration {
        let longest = self.longest_interval.max(self.quiet_after).max(self.believe_absence_after);
        longest.max(self.believe_listed_absence_after).max(self.warn_after).saturating_mul(2)
    }

    /// How long this batch must be absent before that counts.
    pub(crate) fn absence_counts_after(&self, batch: &UnresolvedBatch) -> Duration {
        if batch.in_list && batch.state == BatchState::InDoubt {
            self.believe_listed_absence_after
        } else {
            self.believe_absence_after
        }
    }

    /// How often a batch is polled while nothing is known about the times of its ledger.
    pub(crate) fn pace(&self) -> PollPace {
        PollPace { interval: self.poll_interval, longest: self.longest_interval }
    }
}

pub(crate) fn check_not_zero(options: &[(&'static str, bool)]) -> Result<(), MonitorOptionsError> {
    match options.iter().find(|(_, is_zero)| *is_zero) {
        Some((option, _)) => Err(MonitorOptionsError::Zero { option }),
        None => Ok(()),
    }
}
