use std::{sync::Arc, time::Duration};

use grid_batch_core::{Clock, SystemClock};
use grid_batch_http::{HttpError, HttpOptions, WebSocketOptions};
use thiserror::Error;

/// How nodes are spoken to, and when they are believed.
#[derive(Debug, Clone)]
pub struct ScabbardOptions {
    /// How requests are made. Their limit is to be shorter than the submitter's for one sending.
    pub http: HttpOptions,
    /// How event sockets are held open. A node pings every 30 seconds.
    pub websocket: WebSocketOptions,
    /// How many questions for statuses may be under way at once. A node has as many threads for
    /// requests as it has cores.
    pub connections: usize,
    /// A batch of which every node has said Unknown for so long is not there, if nothing of it was
    /// missed. Longer than the socket's silence, so that it has shown itself alive meanwhile.
    pub absent_after: Duration,
    /// A batch that has been Valid for so long was dropped, if nothing of it was missed. More than
    /// twice the 30 seconds after which the coordinator of a circuit gives up.
    pub dropped_after: Duration,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
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
            clock: Arc::new(SystemClock),
        }
    }
}

/// Why an adapter cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScabbardError {
    /// There is no way to make requests.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// No question could ever be asked.
    #[error("connections is 0; it is to be at least 1")]
    NoConnections,
    /// A dead socket would be taken for a silent one.
    #[error("{option} is {value:?}; it is to be longer than the socket's silence of {silence:?}")]
    TooShort {
        /// The option.
        option: &'static str,
        /// Its value.
        value: Duration,
        /// The longest that nothing may come over a socket that is live.
        silence: Duration,
    },
}

impl ScabbardOptions {
    pub(crate) fn check(&self) -> Result<(), ScabbardError> {
        if self.connections == 0 {
            return Err(ScabbardError::NoConnections);
        }
        let silence = self.websocket.silence_timeout;
        let durations =
            [("absent_after", self.absent_after), ("dropped_after", self.dropped_after)];
        match durations.into_iter().find(|(_, value)| *value <= silence) {
            Some((option, value)) => Err(ScabbardError::TooShort { option, value, silence }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_options_can_be_used() {
        assert_eq!(ScabbardOptions::default().check(), Ok(()));
    }

    #[test]
    fn options_that_would_prove_too_much_are_refused() {
        let silence = ScabbardOptions::default().websocket.silence_timeout;
        let none = ScabbardOptions { connections: 0, ..ScabbardOptions::default() };
        let absent = ScabbardOptions { absent_after: silence, ..ScabbardOptions::default() };
        let dropped = ScabbardOptions { dropped_after: silence, ..ScabbardOptions::default() };
        let message = |options: ScabbardOptions| options.check().unwrap_err().to_string();
        assert_eq!(message(none), "connections is 0; it is to be at least 1");
        let rule = "is 45s; it is to be longer than the socket's silence of 45s";
        assert_eq!(message(absent), format!("absent_after {rule}"));
        assert_eq!(message(dropped), format!("dropped_after {rule}"));
    }
}
