//! A ledger that is a hundred times as fast as a genuine one, and a service that is set to it.

use std::time::Duration;

/// How long a batch is pending.
pub(super) const PENDING_FOR: Duration = Duration::from_millis(10);
/// How long a batch is valid and not committed.
pub(super) const VALID_FOR: Duration = Duration::from_millis(10);
/// How long the ledger waits for a node that does not answer.
pub(super) const COORDINATOR_TIMEOUT: Duration = Duration::from_millis(300);
/// The longest that a request of the service takes.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_millis(400);
/// How often the ledger is restarted when it is.
pub(super) const BETWEEN_RESTARTS: Duration = Duration::from_secs(3);

/// The settings of the service, by name.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    ("ledger.connect_limit", "300ms"),
    ("ledger.request_limit", "400ms"),
    ("ledger.socket_silence", "600ms"),
    ("ledger.reconnect_first", "10ms"),
    ("ledger.reconnect_longest", "200ms"),
    ("ledger.absent_after", "700ms"),
    ("ledger.dropped_after", "800ms"),
    ("claims.expiry_1", "1s"),
    ("claims.expiry_2", "5s"),
    ("queue.delay", "150ms"),
    ("submit.sending_limit", "500ms"),
    ("submit.total_limit", "2s"),
    ("submit.drain_limit", "1s"),
    ("submit.busy_attempts", "4"),
    ("submit.retry_first", "10ms"),
    ("submit.retry_longest", "100ms"),
    ("poll.interval", "50ms"),
    ("poll.interval_with_events", "500ms"),
    ("poll.longest", "1s"),
    ("poll.trigger_gap", "5ms"),
    ("poll.quiet_after", "1s"),
    ("poll.believe_absence_after", "800ms"),
    ("poll.hold_after", "2s"),
    ("poll.give_up_after", "5s"),
    ("poll.max_attempts", "20"),
];
