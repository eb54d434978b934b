use std::{sync::Arc, time::Duration};

use grid_batch_core::{Clock, ServiceScopeId, SystemClock};
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
    /// The maximum number of concurrent status requests. A node serves requests with one thread for
    /// each of its cores.
    pub connections: usize,
    /// How long every node must report Unknown before the batch counts as absent, provided that no
    /// event was missed. It must be longer than the silence timeout of the websocket, so that the
    /// node has answered on the websocket in that time.
    pub absent_after: Duration,
    /// How long a batch must be Valid before it counts as dropped, provided that no event was
    /// missed. It should be more than twice the 30 seconds after which a circuit's coordinator
    /// gives a proposal up.
    pub dropped_after: Duration,
    /// The circuits' other nodes, which are asked about batches but get none.
    pub peers: Vec<PeerService>,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
}

/// A service at another node of its circuit, where it has an id of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerService {
    /// The service that batches are for.
    pub service: ServiceScopeId,
    /// Its id at the other node.
    pub peer: ServiceScopeId,
    /// The URL of the other node.
    pub url: String,
}

impl Default for ScabbardOptions {
    fn default() -> Self {
        let silence_timeout = Duration::from_secs(45);
        Self {
            http: HttpOptions::default(),
            websocket: WebSocketOptions { silence_timeout, ..WebSocketOptions::default() },
            connections: 8,
            absent_after: Duration::from_secs(60),
            dropped_after: Duration::from_secs(90),
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
    /// A broken websocket could pass for a live one.
    #[error(
        "{option} is {value:?}; it must be longer than the websocket's silence timeout of \
         {silence_timeout:?}"
    )]
    TooShort {
        /// The option.
        option: &'static str,
        /// Its value.
        value: Duration,
        /// The silence timeout of event websockets.
        silence_timeout: Duration,
    },
}

impl ScabbardOptions {
    pub(crate) fn check(&self) -> Result<(), ScabbardError> {
        if self.connections == 0 {
            return Err(ScabbardError::NoConnections);
        }
        let silence_timeout = self.websocket.silence_timeout;
        let durations =
            [("absent_after", self.absent_after), ("dropped_after", self.dropped_after)];
        match durations.into_iter().find(|(_, value)| *value <= silence_timeout) {
            Some((option, value)) => {
                Err(ScabbardError::TooShort { option, value, silence_timeout })
            }
            None => Ok(()),
        }
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
        let silence = ScabbardOptions::default().websocket.silence_timeout;
        let none = ScabbardOptions { connections: 0, ..ScabbardOptions::default() };
        let absent = ScabbardOptions { absent_after: silence, ..ScabbardOptions::default() };
        let dropped = ScabbardOptions { dropped_after: silence, ..ScabbardOptions::default() };
        let message = |options: ScabbardOptions| options.check().unwrap_err().to_string();
        assert_eq!(message(none), "connections is 0; it must be at least 1");
        let rule = "is 45s; it must be longer than the websocket's silence timeout of 45s";
        assert_eq!(message(absent), format!("absent_after {rule}"));
        assert_eq!(message(dropped), format!("dropped_after {rule}"));
    }
}
