//! What is read below `/v1`, and what this process knows of why services wait.

use std::sync::Arc;

use grid_batch_api::ApiBuilder;
use grid_batch_core::{Clock, Outcome, SearchLimits, ServiceId, WaitReason};
use grid_batch_store::Store;
use grid_batch_submitter::DelayedServices;
use grid_batch_work::WorkTable;

use super::ledger_check::LedgerCheck;

/// What this process knows of why the batches of services wait. It is read from memory.
#[derive(Clone)]
pub(super) struct WaitSources {
    pub(super) table: WorkTable,
    pub(super) delayed: DelayedServices,
    pub(super) check: LedgerCheck,
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
}

/// Serves it from the store, and the ledgers from memory.
pub(super) fn with_reads(
    api: ApiBuilder,
    sources: WaitSources,
    search: SearchLimits,
) -> ApiBuilder {
    let (ledgers, pauses) = (sources.store.clone(), sources.store.clone());
    let check = sources.check.clone();
    api.with_reads()
        .with_pauses(move |services| Ok(pauses.pauses(services)?))
        .with_known_waits(move |service| sources.of(service))
        .with_search_limits(search)
        .with_ledgers(move || Ok(vec![check.report(ledgers.ledger()?)]))
}

impl WaitSources {
    /// Why the batches of a service wait. Most of it is known only of services that this instance owns.
    pub(super) fn of(&self, service_id: &ServiceId) -> Vec<WaitReason> {
        let lock = self.store.locked_since(service_id).map(|since| WaitReason::Lock { since });
        let nodes = self.check.pool().outages_of(service_id.as_str());
        let nodes = nodes.into_iter().map(WaitReason::Node);
        nodes.chain(self.busy(service_id)).chain(lock).chain(self.in_table(service_id)).collect()
    }

    fn busy(&self, service_id: &ServiceId) -> Option<WaitReason> {
        let delayed = self.delayed.of(service_id).filter(|it| it.outcome == Outcome::Busy)?;
        let since = self.clock.now().minus(delayed.waiting_for);
        Some(WaitReason::Busy { since, attempts: delayed.attempts })
    }

    /// The place that it needs, and what the ledger does not report.
    fn in_table(&self, service_id: &ServiceId) -> Vec<WaitReason> {
        let (now, time) = (self.clock.monotonic(), self.clock.now());
        let work = self.table.lock();
        let sending = work.service(service_id.as_str()).map(|service| &service.sending);
        let waiting = sending.filter(|sending| sending.waits.is_some());
        let place = waiting.map(|sending| {
            if sending.node.is_some() { WaitReason::NodePlace } else { WaitReason::InFlightWindow }
        });
        let unconfirmed = work.not_reported(service_id.as_str()).filter_map(|(batch_id, since)| {
            let since = time.minus(now.since(since));
            Some(WaitReason::Unconfirmed { batch_id: batch_id.parse().ok()?, since })
        });
        place.into_iter().chain(unconfirmed).collect()
    }
}
