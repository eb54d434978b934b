use std::{fmt, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_http::{HttpOptions, WebSocketOptions};

/// Options of the Sawtooth adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SawtoothOptions {
    /// Timeouts and limits of requests. A submission that times out is in doubt, as it would be
    /// after the validator's own timeout of five minutes.
    pub http: HttpOptions,
    /// Timeouts and limits of the event websocket.
    pub websocket: WebSocketOptions,
    /// Credentials for a proxy in front of the REST API. Sawtooth itself has no authentication.
    pub basic_auth: Option<BasicAuth>,
    /// Limit on the number of concurrent status requests. A validator has five threads for all of
    /// its clients, and submissions need them too.
    pub connections: usize,
    /// Whether the network applies batches in the order in which they were sent, as a network with one publishing node
    /// does.
    pub keeps_order: bool,
    /// How long a request without an answer may still arrive at a node.
    pub late_arrival_limit: Duration,
    /// After an outage, a batch is lost if its nodes report twice, this long apart, that they do not have it. A node
    /// does not know a batch for a moment after it has accepted it.
    pub lost_after: Duration,
}

impl Default for SawtoothOptions {
    fn default() -> Self {
        Self {
            http: HttpOptions::default(),
            websocket: WebSocketOptions::default(),
            basic_auth: None,
            connections: 2,
            keeps_order: false,
            late_arrival_limit: Duration::from_secs(330),
            lost_after: Duration::from_secs(2),
        }
    }
}

/// A user name and a password. `Debug` does not show them.
///
/// ```
/// use grid_batch_sawtooth::BasicAuth;
///
/// let auth = BasicAuth::new("Aladdin", "open sesame");
/// assert_eq!(format!("{auth:?}"), "BasicAuth(..)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct BasicAuth(String);

impl BasicAuth {
    /// Creates credentials. The name must not contain a colon.
    pub fn new(name: &str, password: &str) -> Self {
        Self(format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{password}"))))
    }

    /// The value of the `Authorization` header.
    pub(crate) fn header(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BasicAuth(..)")
    }
}
