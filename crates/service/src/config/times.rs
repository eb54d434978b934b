use std::time::Duration;

use super::Config;

/// The times that follow from `ledger.request_timeout`, `poll.hold_after`, `poll.interval` and `claims.idle_expiry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    /// The timeout for connecting to a node.
    pub(crate) connect_timeout: Duration,
    /// The timeout for sending a batch once.
    pub(crate) sending_limit: Duration,
    /// How long a shutdown waits for submissions under way.
    pub(crate) drain_limit: Duration,
    /// The timeout for a submission, from taking a batch to the answer of the last node that is tried.
    pub(crate) total_limit: Duration,
    /// How long a batch has been in its state before evidence of absence is accepted.
    pub(crate) accept_absence_after: Duration,
    /// How long an accepted batch may have no final status before evidence is searched for.
    pub(crate) quiet_after: Duration,
    /// How long nothing of a service may end while a batch is under way before a warning is logged.
    pub(crate) warn_after: Duration,
    /// The longest interval between two polls of a batch that makes no progress.
    pub(crate) longest_interval: Duration,
    /// How long after its last renewal an instance loses all its services.
    pub(crate) full_expiry: Duration,
}

/// A batch that makes no progress is polled at least this often, unless all batches are polled more rarely.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

impl Config {
    pub(crate) fn times(&self) -> Times {
        let Self { claims, poll, testing, .. } = self;
        let request = self.ledger.request_timeout;
        let usual_interval = LONGEST_INTERVAL.max(poll.interval * 2);
        let total_limit = testing.total_limit.unwrap_or(request * 5);
        // Twice the limit of a submission is needed. The rest is for slow renewals.
        let usual_expiry = claims.idle_expiry + total_limit * 5 / 2;
        Times {
            connect_timeout: testing.connect_timeout.unwrap_or(request * 5 / 12),
            sending_limit: testing.sending_limit.unwrap_or(request * 5 / 4),
            drain_limit: testing.drain_limit.unwrap_or(request * 5 / 3),
            total_limit,
            accept_absence_after: testing.accept_absence_after.unwrap_or(request * 5 / 2),
            quiet_after: testing.quiet_after.unwrap_or(poll.hold_after / 2),
            warn_after: testing.warn_after.unwrap_or(poll.hold_after),
            longest_interval: testing.longest_interval.unwrap_or(usual_interval),
            full_expiry: claims.full_expiry.unwrap_or(usual_expiry),
        }
    }

    /// The time after which a batch that was taken is certainly not being submitted any more: twice the
    /// limit of a submission.
    pub fn longest_submission(&self) -> Duration {
        self.times().total_limit * 2
    }

    /// Ended batches must be kept for longer than this: until then the ledger may still report them.
    pub fn retention_limit(&self) -> Duration {
        self.ledger.late_arrival_limit.max(self.poll.give_up_after)
    }
}
