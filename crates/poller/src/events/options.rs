use std::time::Duration;

use grid_batch_support::Backoff;

use crate::{MonitorOptionsError, options::check_not_zero};

/// The options of an event monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventOptions {
    /// The greatest number of services that are listened to at once, each on its own socket.
    pub sockets: usize,
    /// The time limit of one attempt to connect. The adapter's own limit should be shorter.
    pub connect_limit: Duration,
    /// The delays before a broken stream is connected again.
    pub reconnect_backoff: Backoff,
    /// A stream that was connected for this long resets the delays when it breaks.
    pub stable_after: Duration,
    /// How long events are not relied on after a service lost its socket to another one.
    pub distrust_after_eviction: Duration,
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
            distrust_after_eviction: Duration::from_mins(5),
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
        ])
    }
}
