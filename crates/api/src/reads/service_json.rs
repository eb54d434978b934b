use grid_batch_core::Timestamp;
use grid_batch_core::queries::{
    InstanceLease, ServiceExplanation, ServiceFacts, ServiceOverview, ServiceOwner, ServicePause,
};

use super::ReadContext;
use crate::{
    batches::ReasonJson,
    http::{Links, Time, json_types},
};

json_types! {
    /// A service, as lists show it.
    pub(super) struct ServiceJson(
        context: &ReadContext,
        overview: &ServiceOverview,
        pause: Option<&ServicePause>,
        links: &Links<'_>,
        now: Timestamp,
    ) {
        service_id: String = overview.service_id.to_string(),
        open: u64 = overview.open,
        under_way: u64 = overview.under_way,
        in_doubt: u64 = overview.in_doubt,
        oldest_stored_at: Option<Time> = overview.oldest_at.map(Time),
        oldest_age_seconds: Option<f64> = overview.oldest_at.map(|at| now.since(at).as_secs_f64()),
        held: u64 = overview.held,
        /// Whether each batch that is next or under way is held.
        stopped_by_holds: bool = overview.stopped_by_holds,
        /// The last error of a batch that could not be sent.
        failing: Option<String> = overview.failing.clone(),
        /// Why a gate, such as that of the gas price, keeps a batch back.
        parked: Option<String> = overview.parked.clone(),
        halts: u64 = overview.halts,
        halted_since: Option<Time> = overview.halted_since.map(Time),
        paused: Option<PauseJson> = pause.map(PauseJson::new),
        /// Why nothing happens in the service now, whatever its batches wait for.
        waits: Vec<ReasonJson> = waits(context, overview, pause, now),
        strategy: &'static str = overview.scheduling.strategy.as_str(),
        after_invalid: &'static str = overview.scheduling.after_invalid.as_str(),
        lanes: u32 = overview.scheduling.lanes,
        owner: Option<OwnerJson> = overview.owner.as_ref().map(|owner| OwnerJson::new(owner, now)),
        link: String = links.service(&overview.service_id),
    }

    struct PauseJson(pause: &ServicePause) {
        since: Time = Time(pause.since),
        /// Who has paused it; null if its nodes have different states.
        operator: Option<String> = pause.operator.clone(),
        /// Whether all services are paused.
        of_all: bool = pause.of_all,
        reason: String = pause.reason.clone(),
    }

    struct OwnerJson(owner: &ServiceOwner, now: Timestamp) {
        epoch: u64 = owner.epoch,
        #[serde(flatten)]
        instance: InstanceJson = InstanceJson::new(&owner.instance, now),
    }

    /// An instance with its lease.
    pub(super) struct InstanceJson(lease: &InstanceLease, now: Timestamp) {
        instance_id: String = lease.instance_id.to_string(),
        name: Option<String> = lease.name.clone(),
        lease_ends_at: Time = Time(lease.lease_ends_at),
        full_lease_ends_at: Time = Time(lease.full_lease_ends_at),
        lease_is_over: bool = lease.lease_ends_at <= now,
        ledger_confirmed: bool = lease.ledger_confirmed,
        draining: bool = lease.draining,
    }
}

fn waits(
    context: &ReadContext,
    service: &ServiceOverview,
    pause: Option<&ServicePause>,
    now: Timestamp,
) -> Vec<ReasonJson> {
    let known = context.sources.known_waits.of(&service.service_id);
    let facts = ServiceFacts { service, pause, waits: &known, search: None, now };
    ReasonJson::all(&ServiceExplanation::new(facts, None).waits())
}
