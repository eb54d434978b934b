//! Dividing services among instances.

use std::fmt;

use crate::ledger::AttemptId;
use crate::{BatchResult, ItemId, ServiceId};

/// One run of one process: the owner of claims.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(String);

impl InstanceId {
    /// The instance with this id.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The exclusive right of one instance to work on one service, until another instance takes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The service.
    pub service_id: ServiceId,
    /// A fencing token: each takeover raises it, and a write with an older one changes nothing.
    pub epoch: u64,
}

/// The services that an instance has taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Takeover {
    /// The services, each with its new epoch.
    pub claims: Vec<Claim>,
    /// Batches that a previous owner had handed to a submitter. They are in doubt now; ask the
    /// ledger about them at once.
    pub in_doubt: Vec<(ServiceId, ItemId)>,
    /// Instances that have neither renewed nor released their claims, and that were removed.
    pub lost: Vec<InstanceId>,
}

impl Takeover {
    /// Adds the services and batches of another takeover.
    pub fn extend(&mut self, other: Self) {
        self.claims.extend(other.claims);
        self.in_doubt.extend(other.in_doubt);
        self.lost.extend(other.lost);
    }
}

/// A batch that is recorded as being with a submitter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubmittedBatch {
    /// The service.
    pub service_id: ServiceId,
    /// The batch.
    pub batch_id: ItemId,
    /// The attempt.
    pub attempt_id: AttemptId,
}

/// Keeps the claims of one instance in a store.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait ClaimKeeper: Send {
    /// Extends the lease of the instance. `false`: the lease had expired and others may have taken
    /// its services; call [`register_again`](Self::register_again) or shut down.
    fn renew(&self) -> BatchResult<bool>;

    /// Registers as a new instance that claims nothing.
    fn register_again(&self) -> BatchResult<()>;

    /// Takes up to `limit` services that no live instance owns.
    fn take(&self, limit: usize) -> BatchResult<Takeover>;

    /// Takes those of these services that no live instance owns, and may notify the owners of the others.
    fn take_services(&self, services: &[ServiceId]) -> BatchResult<Takeover>;

    /// The batches of claimed services that are recorded as being with a submitter.
    fn with_submitter(&self) -> BatchResult<Vec<SubmittedBatch>>;

    /// Puts those of these batches in doubt that are still with the submitter in the same attempt, and returns them.
    /// Some may be left for a later call.
    fn recover(&self, orphans: &[SubmittedBatch]) -> BatchResult<Vec<SubmittedBatch>>;

    /// Releases every claim on a service that has no batch with a submitter, and returns how many
    /// were released.
    fn release(&self) -> BatchResult<usize>;
}

/// Stores which claimed services are paused because their nodes have different states.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait StatePauseStore: Send {
    /// The claimed services that are paused for this reason.
    fn services_with_different_states(&self) -> BatchResult<Vec<ServiceId>>;

    /// Begins or ends this pause of a claimed service. Returns whether anything changed.
    fn set_states_differ(&self, service_id: &ServiceId, differ: bool) -> BatchResult<bool>;
}

/// What other instances notify this one of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notifications {
    /// Services of this instance that have batches.
    pub stored: Vec<ServiceId>,
    /// Batches whose end clients of other instances wait for.
    pub awaited: Vec<ItemId>,
    /// Batches that have ended and were awaited.
    pub ended: Vec<ItemId>,
}
