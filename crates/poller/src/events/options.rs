use std::time::Duration;

use grid_batch_support::Backoff;

use crate::{MonitorOptionsError, options::check_not_zero};

/// The options of an event monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventOptions {
    /// Limit on the number of services that are listened to at once, each on its own socket.
    pub sockets: usize,
    /// The time limit of one attempt to connect. The adapter's own limit should be shorter.
    pub connect_limit: Duration,
    /// The delays before a broken stream is connected again.
    pub reconnect_backoff: Backoff,
    /// A stream that was connected for this long resets the delays when it breaks.
    pub stable_after: Duration,
    /// A service that was followed within this time does not lose its socket to another one.
    pub evict_after: Duration,
    /// How long events are not relied on after a service lost its socket to another one.
    pub distrust_after_eviction: Duration,
    /// How long before or after a commit its event may arrive.
    pub event_tolerance: Duration,
    /// A stream is silent after this many commits in a row without an event.
    pub silent_after: u32,
    /// The delays before a silent stream is connected again.
    pub silent_reconnect_backoff: Backoff,
    /// Makes the random part of the delays repeatable.
    pub seed: Option<u64>,
}

impl Default for EventOptions {
    fn default() -> Self {
        Self {
            sockets: 100,
            connect_limit: Duration::from_secs(30),
            reconnect_backoff: Backoff {
                first: Duration::from_millis(250),
                longest: Duration::from_secs(30),
            },
            stable_after: Duration::from_mins(1),
            evict_after: Duration::from_secs(5),
            distrust_after_eviction: Duration::from_mins(5),
            event_tolerance: Duration::from_secs(1),
            silent_after: 3,
            silent_reconnect_backoff: Backoff {
                first: Duration::from_mins(1),
                longest: Duration::from_mins(10),
            },
            seed: None,
        }
    }
}

impl EventOptions {
    pub(crate) fn check(&self) -> Result<(), MonitorOptionsError> {
        check_not_zero(&[
            ("sockets", self.sockets == 0),
            ("connect_limit", self.connect_limit.is_zero()),
            ("reconnect_backoff", self.reconnect_backoff.is_zero()),
            ("silent_after", self.silent_after == 0),
            ("silent_reconnect_backoff", self.silent_reconnect_backoff.is_zero()),
        ])
    }
}
