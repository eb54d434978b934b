use std::{fmt, time::Duration};

use crate::Timestamp;

/// A node that does not answer.
///
/// Its text is a sentence without a full stop. It has no secret, but names the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOutage {
    /// Scheme, host and port of the node's URL.
    pub node: String,
    /// When the first request failed since the node last answered.
    pub since: Timestamp,
    /// For how long it has not answered.
    pub lasted: Duration,
    /// Why the last request failed, which may name hosts.
    pub reason: String,
}

impl fmt::Display for NodeOutage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has not answered for {} s", self.node, self.lasted.as_secs())
    }
}
