use grid_batch_core::Timestamp;
use grid_batch_core::queries::{
    InstanceLease, ServiceExplanation, ServiceFacts, ServiceOverview, ServiceOwner, ServicePause,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::ReadContext;
use crate::{batches::ReasonJson, http::Links};

/// A service, as lists show it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServiceJson {
    service_id: String,
    open: u64,
    under_way: u64,
    in_doubt: u64,
    oldest_stored_at: Option<String>,
    oldest_age_seconds: Option<f64>,
    held: u64,
    /// The last error of a batch that could not be sent.
    failing: Option<String>,
    /// Why a gate, such as that of the gas price, keeps a batch back.
    parked: Option<String>,
    halts: u64,
    halted_since: Option<String>,
    paused: Option<PauseJson>,
    /// Why nothing happens in the service now, whatever its batches wait for.
    waits: Vec<ReasonJson>,
    strategy: &'static str,
    after_invalid: &'static str,
    lanes: u32,
    owner: Option<OwnerJson>,
    link: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct PauseJson {
    since: String,
    reason: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct OwnerJson {
    epoch: u64,
    #[serde(flatten)]
    instance: InstanceJson,
}

/// An instance with its lease.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct InstanceJson {
    instance_id: String,
    name: Option<String>,
    lease_ends_at: String,
    full_lease_ends_at: String,
    lease_is_over: bool,
    ledger_confirmed: bool,
    draining: bool,
}

impl ServiceJson {
    pub(super) fn new(
        context: &ReadContext,
        service: &ServiceOverview,
        pause: Option<&ServicePause>,
        links: &Links<'_>,
    ) -> Self {
        let now = context.api.clock.now();
        let known = context.sources.known_waits.of(&service.service_id);
        let facts = ServiceFacts { service, pause, waits: &known, search: None, now };
        let age = |at| now.since(at).as_secs_f64();
        Self {
            service_id: service.service_id.to_string(),
            open: service.open,
            under_way: service.under_way,
            in_doubt: service.in_doubt,
            oldest_stored_at: service.oldest_at.map(Timestamp::rfc3339_micros),
            oldest_age_seconds: service.oldest_at.map(age),
            held: service.held,
            failing: service.failing.clone(),
            parked: service.parked.clone(),
            halts: service.halts,
            halted_since: service.halted_since.map(Timestamp::rfc3339_micros),
            paused: pause.map(PauseJson::new),
            waits: ReasonJson::all(&ServiceExplanation::new(facts, None).waits()),
            strategy: service.scheduling.strategy.as_str(),
            after_invalid: service.scheduling.after_invalid.as_str(),
            lanes: service.scheduling.lanes,
            owner: service.owner.clone().map(|owner| OwnerJson::new(owner, now)),
            link: links.service(&service.service_id),
        }
    }
}

impl PauseJson {
    fn new(pause: &ServicePause) -> Self {
        Self { since: pause.since.rfc3339_micros(), reason: pause.reason.clone() }
    }
}

impl OwnerJson {
    fn new(owner: ServiceOwner, now: Timestamp) -> Self {
        Self { epoch: owner.epoch, instance: InstanceJson::new(owner.instance, now) }
    }
}

impl InstanceJson {
    pub(super) fn new(instance: InstanceLease, now: Timestamp) -> Self {
        Self {
            instance_id: instance.instance_id.to_string(),
            name: instance.name,
            lease_ends_at: instance.lease_ends_at.rfc3339_micros(),
            full_lease_ends_at: instance.full_lease_ends_at.rfc3339_micros(),
            lease_is_over: instance.lease_ends_at <= now,
            ledger_confirmed: instance.ledger_confirmed,
            draining: instance.draining,
        }
    }
}
