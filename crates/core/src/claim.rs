use std::fmt;

use crate::{ServiceId, monitor::BatchResult};

/// One run of one process: what a claim belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(String);

impl InstanceId {
    /// The instance of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The right of one instance to work on one service, until another takes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    /// What is claimed.
    pub service_id: ServiceId,
    /// Raised each time the service changes hands: a write that names an older one changes nothing.
    pub epoch: u64,
}

/// Keeps one instance's claims in the store.
pub trait ClaimKeeper: Send {
    /// Says that the instance lives. `false`: it was given up for dead, and its claims are gone.
    fn renew(&self) -> BatchResult<bool>;

    /// Takes up to `limit` services that nobody works on.
    fn take(&self, limit: usize) -> BatchResult<Vec<Claim>>;

    /// Gives back every claim on a service that is not being sent for, and says how many.
    fn release(&self) -> BatchResult<usize>;
}
