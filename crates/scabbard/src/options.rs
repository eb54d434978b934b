use std::{sync::Arc, time::Duration};

use grid_batch_core::{Clock, PeerService, SystemClock};
use grid_batch_http::{HttpError, HttpOptions, WebSocketOptions};
use thiserror::Error;

/// Options of the Scabbard adapter.
#[derive(Debug, Clone)]
pub struct ScabbardOptions {
    /// Timeouts and limits of requests. The request timeout should be shorter than the submitter's
    /// timeout of one submission.
    pub http: HttpOptions,
    /// Timeouts and limits of event websockets. A node pings every 30 seconds.
    pub websocket: WebSocketOptions,
    /// Limit on the number of concurrent status requests. A node serves requests with one thread for
    /// each of its cores.
    pub connections: usize,
    /// How long a request without an answer may still arrive at a node, and how long an accepted batch may still be
    /// applied if it is not known why it was not.
    pub late_arrival_limit: Duration,
    /// After this time, a circuit's coordinator gives up a batch on which not all nodes have voted.
    pub coordinator_timeout: Duration,
    /// The circuits' other nodes, which are asked about batches but do not get any.
    pub peers: Vec<PeerService>,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
}

impl Default for ScabbardOptions {
    fn default() -> Self {
        let silence_timeout = Duration::from_secs(45);
        Self {
            http: HttpOptions::default(),
            websocket: WebSocketOptions { silence_timeout, ..WebSocketOptions::default() },
            connections: 8,
            late_arrival_limit: Duration::from_secs(330),
            coordinator_timeout: Duration::from_secs(30),
            peers: Vec::new(),
            clock: Arc::new(SystemClock),
        }
    }
}

/// Why an adapter cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScabbardError {
    /// The HTTP client cannot be created.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// No status request would be possible.
    #[error("connections is 0; it must be at least 1")]
    NoConnections,
    /// A batch would be given up while a request for it may still arrive.
    #[error(
        "late_arrival_limit is {late_arrival_limit:?}; it must be longer than the coordinator's timeout \
         of {coordinator_timeout:?}"
    )]
    TooShort {
        /// How long a request without an answer may still arrive.
        late_arrival_limit: Duration,
        /// The timeout of circuits' coordinators.
        coordinator_timeout: Duration,
    },
}

impl ScabbardOptions {
    pub(crate) fn check(&self) -> Result<(), ScabbardError> {
        if self.connections == 0 {
            return Err(ScabbardError::NoConnections);
        }
        let Self { late_arrival_limit, coordinator_timeout, .. } = *self;
        if late_arrival_limit <= coordinator_timeout {
            return Err(ScabbardError::TooShort { late_arrival_limit, coordinator_timeout });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_options_are_valid() {
        assert_eq!(ScabbardOptions::default().check(), Ok(()));
    }

    #[test]
    fn too_short_durations_are_refused() {
        let defaults = ScabbardOptions::default();
        let none = ScabbardOptions { connections: 0, ..defaults.clone() };
        let late_arrival_limit = defaults.coordinator_timeout;
        let late = ScabbardOptions { late_arrival_limit, ..defaults };
        let message = |options: ScabbardOptions| options.check().unwrap_err().to_string();
        assert_eq!(message(none), "connections is 0; it must be at least 1");
        let rule = "is 30s; it must be longer than the coordinator's timeout of 30s";
        assert_eq!(message(late), format!("late_arrival_limit {rule}"));
    }
}
