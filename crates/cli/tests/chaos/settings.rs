//! Settings of a ledger that is a hundred times as fast as a real one, and of its instances.

use std::time::Duration;

pub const PENDING_FOR: Duration = Duration::from_millis(10);
pub const VALID_FOR: Duration = Duration::from_millis(10);
pub const COORDINATOR_TIMEOUT: Duration = Duration::from_millis(300);
/// Longer than the instances' timeout for a request to the ledger.
pub const LATE: Duration = Duration::from_millis(500);
/// Longer than an instance waits before it accepts that a batch is absent.
pub const LATE_ARRIVAL: Duration = Duration::from_secs(2);
/// An instance that is not paused has ended a submission after this time.
pub const TOTAL_LIMIT: Duration = Duration::from_secs(1);
pub const EXPIRY_2: Duration = Duration::from_secs(4);
/// The most connections to the database that an instance has.
pub const CONNECTIONS: usize = 10;

/// The settings of an instance, by their environment variables without `GRID_BATCH_`.
pub const SETTINGS: &[(&str, &str)] = &[
    ("LISTEN", "127.0.0.1:0"),
    ("ACCESS_MODE", "none"),
    ("STORE_CONNECTIONS", "6"),
    ("CLAIMS_IDLE_EXPIRY", "2s"),
    ("CLAIMS_FULL_EXPIRY", "4s"),
    ("LEDGER_REQUEST_TIMEOUT", "400ms"),
    ("LEDGER_COORDINATOR_TIMEOUT", "300ms"),
    ("LEDGER_LATE_ARRIVAL_LIMIT", "3s"),
    ("POLL_INTERVAL", "50ms"),
    ("POLL_REQUESTS_PER_SECOND", "1000"),
    ("POLL_HOLD_AFTER", "2s"),
    ("POLL_GIVE_UP_AFTER", "5s"),
];

/// What only tests set.
pub const TESTING: &[(&str, &str)] = &[
    ("TESTING_LOCK_TIMEOUT", "2s"),
    ("TESTING_CONNECT_TIMEOUT", "300ms"),
    ("TESTING_SILENCE_TIMEOUT", "600ms"),
    ("TESTING_RECONNECT_FIRST", "10ms"),
    ("TESTING_RECONNECT_LONGEST", "200ms"),
    ("TESTING_QUEUE_POLL_INTERVAL", "200ms"),
    ("TESTING_FIRST_DELAY", "20ms"),
    ("TESTING_LONGEST_DELAY", "150ms"),
    ("TESTING_SENDING_LIMIT", "500ms"),
    ("TESTING_TOTAL_LIMIT", "1s"),
    ("TESTING_DRAIN_LIMIT", "2s"),
    ("TESTING_LONGEST_INTERVAL", "1s"),
    ("TESTING_QUIET_AFTER", "1s"),
    ("TESTING_ACCEPT_ABSENCE_AFTER", "800ms"),
    ("TESTING_MAX_ATTEMPTS", "20"),
];

/// The same, by the names of the release before.
pub const TESTING_BEFORE: &[(&str, &str)] = &[
    ("STORE_LOCK_TIMEOUT", "2s"),
    ("LEDGER_CONNECT_TIMEOUT", "300ms"),
    ("LEDGER_SILENCE_TIMEOUT", "600ms"),
    ("LEDGER_RECONNECT_FIRST", "10ms"),
    ("LEDGER_RECONNECT_LONGEST", "200ms"),
    ("QUEUE_POLL_INTERVAL", "200ms"),
    ("QUEUE_DELAY", "20ms"),
    ("QUEUE_LONGEST_DELAY", "150ms"),
    ("SUBMIT_SENDING_LIMIT", "500ms"),
    ("SUBMIT_TOTAL_LIMIT", "1s"),
    ("SUBMIT_DRAIN_LIMIT", "2s"),
    ("POLL_LONGEST_INTERVAL", "1s"),
    ("POLL_QUIET_AFTER", "1s"),
    ("POLL_ACCEPT_ABSENCE_AFTER", "800ms"),
    ("POLL_MAX_ATTEMPTS", "20"),
];
