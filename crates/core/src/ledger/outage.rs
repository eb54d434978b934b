use std::{fmt, time::Duration};

use crate::Timestamp;

/// A node that does not work.
///
/// Its text is a sentence without a full stop. It names the node, but contains no secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Scheme, host and port of the node's URL.
    pub node: String,
    /// What the node does not do.
    pub kind: OutageKind,
    /// When the first request failed since the node last worked.
    pub since: Timestamp,
    /// For how long it has not worked.
    pub lasted: Duration,
    /// Why the last request failed, which may name hosts.
    pub reason: String,
}

/// What a node does not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutageKind {
    /// It does not answer.
    Unanswered,
    /// It does not report which ledger it belongs to.
    Unidentified,
}

impl Outage {
    /// What it does not do, and for how long.
    pub fn problem(&self) -> String {
        let seconds = self.lasted.as_secs();
        match self.kind {
            OutageKind::Unanswered => format!("has not answered for {seconds} s"),
            OutageKind::Unidentified => {
                format!("has not reported which ledger it belongs to for {seconds} s")
            }
        }
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.node, self.problem())
    }
}
