use std::time::Duration;

use grid_batch_core::PollPace;
use thiserror::Error;

use crate::{Backoff, environment};

/// The environment variable that [`MonitorOptions::with_environment`] reads.
pub const POLL_INTERVAL_VARIABLE: &str = "GRID_BATCH_POLL_INTERVAL";

/// How a polling monitor goes about its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorOptions {
    /// How often to look for batches that are due, and to ask for a young one. A look that finds
    /// nothing costs one question to the store, and none to a ledger.
    pub poll_interval: Duration,
    /// How often to ask for a young batch while events are live: polling is only the fallback then.
    pub poll_interval_with_events: Duration,
    /// However old a batch is, it is asked for this often.
    pub longest_interval: Duration,
    /// Polls of one service begin at least so far apart, whatever triggers them.
    pub trigger_gap: Duration,
    /// How many batches to take from the store at once.
    pub batch_limit: usize,
    /// The longest that one question may take. A reader's own limit should be shorter.
    pub answer_limit: Duration,
    /// How long a stop waits for what is under way, and for a store that fails.
    pub drain_limit: Duration,
    /// How many threads the asking has.
    pub worker_threads: usize,
    /// The waits of a monitor whose store fails.
    pub store_backoff: Backoff,
    /// Makes the random part of waits repeatable.
    pub seed: Option<u64>,

    /// Evidence is looked for when a ledger has only said *pending* or *valid* for this long.
    pub quiet_after: Duration,
    /// Evidence of absence is not believed before: a submission that was given up may still arrive.
    pub believe_absence_after: Duration,
    /// A batch of which nothing can be proved is undecided after this.
    pub hold_after: Duration,
    /// A batch that the ledger has, and does not apply, is held after this.
    pub give_up_after: Duration,
    /// A batch that is absent after so many attempts is held.
    pub max_attempts: u32,
}

/// What becomes of a batch of which nothing can be proved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Undecided {
    /// It is held: a person decides.
    #[default]
    Hold,
    /// It is submitted again. A ledger that took it, and applies what it is given twice, applies it
    /// twice.
    Resubmit,
}

/// Why options cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MonitorOptionsError {
    /// An option is zero that must not be.
    #[error("the monitor's {option} is zero; it must be more")]
    Zero {
        /// Which.
        option: &'static str,
    },
    /// An environment variable does not say what it should.
    #[error("{variable} is {value:?}; it must be {rule}")]
    Variable {
        /// Which.
        variable: &'static str,
        /// What it says.
        value: String,
        /// What it should.
        rule: &'static str,
    },
}

impl Default for MonitorOptions {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(1),
            poll_interval_with_events: Duration::from_secs(30),
            longest_interval: Duration::from_mins(1),
            trigger_gap: Duration::from_millis(20),
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
            believe_absence_after: Duration::from_secs(30),
            hold_after: Duration::from_mins(2),
            give_up_after: Duration::from_hours(1),
            max_attempts: 10,
        }
    }
}

impl MonitorOptions {
    /// The same, with the poll interval of [`POLL_INTERVAL_VARIABLE`], where that is set: seconds,
    /// or a time with a unit, such as `500ms`, `2s` or `1m`.
    pub fn with_environment(self) -> Result<Self, MonitorOptionsError> {
        let Some(value) = std::env::var_os(POLL_INTERVAL_VARIABLE) else { return Ok(self) };
        let poll_interval = environment::duration(POLL_INTERVAL_VARIABLE, &value)?;
        Ok(Self { poll_interval, ..self })
    }

    pub(crate) fn check(&self) -> Result<(), MonitorOptionsError> {
        none_is_zero(&[
            ("poll_interval", self.poll_interval.is_zero()),
            ("poll_interval_with_events", self.poll_interval_with_events.is_zero()),
            ("longest_interval", self.longest_interval.is_zero()),
            ("batch_limit", self.batch_limit == 0),
            ("answer_limit", self.answer_limit.is_zero()),
            ("worker_threads", self.worker_threads == 0),
            ("store_backoff", self.store_backoff.is_zero()),
            ("max_attempts", self.max_attempts == 0),
        ])
    }

    pub(crate) fn pace(&self, events_are_live: bool) -> PollPace {
        let interval =
            if events_are_live { self.poll_interval_with_events } else { self.poll_interval };
        PollPace { interval, longest: self.longest_interval }
    }
}

pub(crate) fn none_is_zero(options: &[(&'static str, bool)]) -> Result<(), MonitorOptionsError> {
    match options.iter().find(|(_, is_zero)| *is_zero) {
        Some((option, _)) => Err(MonitorOptionsError::Zero { option }),
        None => Ok(()),
    }
}
