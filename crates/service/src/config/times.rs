use std::time::Duration;

use grid_batch_settings::{ConfigError, SettingValues};

/// The times that follow from `ledger.request_timeout`, `poll.hold_after` and `poll.interval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    /// The timeout for a request to a node.
    pub(super) request_timeout: Duration,
    /// The timeout for connecting to a node.
    pub(super) connect_timeout: Duration,
    /// The timeout for sending a batch once.
    pub(super) sending_limit: Duration,
    /// How long a shutdown waits for submissions under way.
    pub(super) drain_limit: Duration,
    /// The timeout for a submission, from taking a batch to the answer of the last node that is tried.
    pub(super) total_limit: Duration,
    /// How long a batch has been in its state before evidence of absence is accepted.
    pub(super) accept_absence_after: Duration,
    /// How long evidence is searched for before a batch is held.
    pub(super) hold_after: Duration,
    /// How long an accepted batch may have no final status before evidence is searched for.
    pub(super) quiet_after: Duration,
    /// How long nothing of a service may end while a batch is under way before a warning is logged.
    pub(super) warn_after: Duration,
    /// The longest interval from the acceptance of a batch to its first poll.
    pub(super) interval: Duration,
    /// The longest interval between two polls of a batch that makes no progress.
    pub(super) longest_interval: Duration,
}

/// A batch that makes no progress is polled at least this often, unless all batches are polled more rarely.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

impl Times {
    pub(super) fn from_settings(settings: &SettingValues) -> Result<Self, ConfigError> {
        let or = |name: &str, derived: Duration| {
            let given: Option<Duration> = settings.get(name)?;
            Ok::<_, ConfigError>(given.unwrap_or(derived))
        };
        let request_timeout: Duration = settings.get("ledger.request_timeout")?;
        let hold_after: Duration = settings.get("poll.hold_after")?;
        let interval: Duration = settings.get("poll.interval")?;
        Ok(Self {
            request_timeout,
            connect_timeout: or("testing.connect_timeout", request_timeout * 5 / 12)?,
            sending_limit: or("testing.sending_limit", request_timeout * 5 / 4)?,
            drain_limit: or("testing.drain_limit", request_timeout * 5 / 3)?,
            total_limit: or("testing.total_limit", request_timeout * 5)?,
            accept_absence_after: or("testing.accept_absence_after", request_timeout * 5 / 2)?,
            hold_after,
            quiet_after: or("testing.quiet_after", hold_after / 2)?,
            warn_after: or("testing.warn_after", hold_after)?,
            interval,
            longest_interval: or("testing.longest_interval", LONGEST_INTERVAL.max(interval * 2))?,
        })
    }
}
