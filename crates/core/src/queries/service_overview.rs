//! Services as programs and operators see them: how many batches are open, who works on them, and what is
//! wrong.

use crate::claims::InstanceId;
use crate::queue::Scheduling;
use crate::{ServiceId, Timestamp};

/// The present state of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceOverview {
    /// The service.
    pub service_id: ServiceId,
    /// How many of its batches are open.
    pub open: u64,
    /// How many of them are with a submitter or may be at the ledger.
    pub under_way: u64,
    /// For how many of them it is not known whether the ledger has them.
    pub in_doubt: u64,
    /// When the oldest open batch was stored.
    pub oldest_at: Option<Timestamp>,
    /// How many open batches are held for an operator.
    pub held: u64,
    /// Whether holds stop the service: each batch that is next or under way is held.
    pub stopped_by_holds: bool,
    /// The last error of a batch that could not be sent and is not held; `None`: there is none.
    pub failing: Option<String>,
    /// Why a gate, such as that of the gas price, keeps back a batch that is not held; `None`: no gate does.
    pub parked: Option<String>,
    /// How many invalid batches stop others.
    pub halts: u64,
    /// Since when the first of them has stopped others.
    pub halted_since: Option<Timestamp>,
    /// How its batches are scheduled.
    pub scheduling: Scheduling,
    /// Which instance works on it.
    pub owner: Option<ServiceOwner>,
}

/// The instance that claims a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceOwner {
    /// The instance.
    pub instance: InstanceLease,
    /// The epoch of the claim.
    pub epoch: u64,
}

/// An instance and its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceLease {
    /// The instance.
    pub instance_id: InstanceId,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// When others may take those of its services that have no batch with a submitter.
    pub lease_ends_at: Timestamp,
    /// When others may take all of its services.
    pub full_lease_ends_at: Timestamp,
    /// Whether it has confirmed which ledger its nodes belong to. It takes no services before that.
    pub ledger_confirmed: bool,
    /// Whether an operator has requested that it take nothing more and release its services.
    pub draining: bool,
}

/// A service and the instance that claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedService {
    /// The service.
    pub service_id: ServiceId,
    /// The instance; `None`: none claims it.
    pub instance_id: Option<InstanceId>,
    /// The epoch of the claim, which each takeover raises.
    pub epoch: u64,
}
