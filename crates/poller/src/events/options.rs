use std::time::Duration;

use crate::{Backoff, MonitorOptionsError, options::none_is_zero};

/// How an event monitor goes about its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventOptions {
    /// At most so many services are listened to at once.
    pub sockets: usize,
    /// The longest that beginning to listen may take. An adapter's own limit should be shorter.
    pub connect_limit: Duration,
    /// The waits before listening again to a service that broke.
    pub reconnect_backoff: Backoff,
    /// A stream that lived this long was well: when it breaks, the waits begin with the first.
    pub steady_after: Duration,
    /// When a service had to be let go for want of a socket, events are not relied on for this long.
    pub crowded_for: Duration,
    /// Makes the random part of all waits repeatable.
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
            steady_after: Duration::from_mins(1),
            crowded_for: Duration::from_mins(5),
            seed: None,
        }
    }
}

impl EventOptions {
    pub(crate) fn check(&self) -> Result<(), MonitorOptionsError> {
        none_is_zero(&[
            ("sockets", self.sockets == 0),
            ("connect_limit", self.connect_limit.is_zero()),
            ("reconnect_backoff", self.reconnect_backoff.is_zero()),
        ])
    }
}
