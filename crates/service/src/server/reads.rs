//! What is read below `/v1`, and what this process knows of why services wait.

use std::sync::Arc;

use grid_batch_api::ApiBuilder;
use grid_batch_core::{SearchLimits, ServiceId, WaitReason};
use grid_batch_queuer::Places;
use grid_batch_store::Store;

use super::ledger_check::LedgerCheck;

/// Serves it from the store, and the ledgers from memory.
pub(super) fn with_reads(
    api: ApiBuilder,
    store: &Arc<Store>,
    window: Option<Places>,
    check: LedgerCheck,
    search: SearchLimits,
) -> ApiBuilder {
    let (nodes, locks) = (check.clone(), Arc::clone(store));
    let (ledgers, pauses) = (Arc::clone(store), Arc::clone(store));
    api.with_reads()
        .with_pauses(move |services| Ok(pauses.pauses(services)?))
        .with_known_waits(move |service| known_waits(service, window.as_ref(), &nodes, &locks))
        .with_search_limits(search)
        .with_ledgers(move || Ok(vec![check.report(ledgers.ledger()?)]))
}

/// Why the batches of a service wait, as far as this process knows. Those of services that another instance owns
/// wait in the window of that one.
fn known_waits(
    service_id: &ServiceId,
    window: Option<&Places>,
    check: &LedgerCheck,
    store: &Store,
) -> Vec<WaitReason> {
    let waits_for_window = window.is_some_and(|window| window.waits(service_id));
    let in_window = waits_for_window.then_some(WaitReason::InFlightWindow);
    let lock = store.locked_since(service_id).map(|since| WaitReason::Lock { since });
    let nodes = check.pool().outages_of(service_id.as_str()).into_iter().map(WaitReason::Node);
    nodes.chain(lock).chain(in_window).collect()
}
