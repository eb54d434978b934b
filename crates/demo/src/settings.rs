//! A simulated ledger that is a hundred times as fast as a real one, and the server's settings for it.

use std::time::Duration;

/// How long a batch is pending.
pub(crate) const PENDING_FOR: Duration = Duration::from_millis(10);
/// How long a batch is valid before it is committed.
pub(crate) const VALID_FOR: Duration = Duration::from_millis(10);
/// The ledger's timeout for its own nodes.
pub(crate) const COORDINATOR_TIMEOUT: Duration = Duration::from_millis(300);
/// The server's timeout for a request, as in [`WITH_FAULTS`].
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_millis(400);
/// The time between two restarts of the ledger.
pub(crate) const RESTART_INTERVAL: Duration = Duration::from_secs(3);

/// The server's settings.
pub(crate) const SETTINGS: &[(&str, &str)] = &[
    // Its clients are in the same process.
    ("access.mode", "none"),
    ("testing.reconnect_first", "10ms"),
    ("testing.reconnect_longest", "200ms"),
    ("ledger.coordinator_timeout", "300ms"),
    // One key signs for all services.
    ("testing.new_services_per_signer", "10000"),
    ("testing.first_delay", "20ms"),
    ("testing.longest_delay", "500ms"),
    ("testing.drain_limit", "1s"),
    ("poll.interval", "50ms"),
    ("testing.longest_interval", "1s"),
    ("poll.requests_per_second", "1000"),
    ("testing.trigger_gap", "5ms"),
];

/// Settings by which faults are noticed soon. Without faults, they would only take a slow machine for one.
pub(crate) const WITH_FAULTS: &[(&str, &str)] = &[
    ("testing.connect_timeout", "300ms"),
    ("ledger.request_timeout", "400ms"),
    ("testing.silence_timeout", "600ms"),
    ("ledger.late_arrival_limit", "1s"),
    ("claims.idle_expiry", "1s"),
    ("claims.full_expiry", "5s"),
    ("testing.sending_limit", "500ms"),
    ("testing.total_limit", "2s"),
    ("testing.quiet_after", "1s"),
    ("testing.accept_absence_after", "800ms"),
    ("poll.hold_after", "2s"),
    ("poll.give_up_after", "5s"),
    ("testing.max_attempts", "20"),
];
