use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_http::{HttpOptions, SocketOptions};

/// How Sawtooth is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SawtoothOptions {
    /// How requests are made. What takes longer than its limit is in doubt, as it would be after the
    /// validator's own five minutes.
    pub http: HttpOptions,
    /// How event sockets are held open.
    pub sockets: SocketOptions,
    /// Who asks, where a proxy before the ledger wants to know. Sawtooth itself asks nobody.
    pub basic_auth: Option<BasicAuth>,
    /// So many questions for statuses may be under way at once. A validator has five threads for
    /// all of its clients, and submissions need them too.
    pub connections: usize,
}

impl Default for SawtoothOptions {
    fn default() -> Self {
        Self {
            http: HttpOptions::default(),
            sockets: SocketOptions::default(),
            basic_auth: None,
            connections: 2,
        }
    }
}

/// A name and a password. They are shown nowhere.
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
    /// The name, which has no colon, and the password.
    pub fn new(name: &str, password: &str) -> Self {
        Self(format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{password}"))))
    }

    /// The value of the header.
    pub(crate) fn header(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BasicAuth(..)")
    }
}
