use grid_batch_core::ServiceId;

use crate::sql::{
    Statement, Store, StoreError,
    rows::{ServiceRow, limit},
};

/// How many services are read at a time.
const PAGE: usize = 1_000;

/// Fails if open batches of a service that the ledger can have were stored with other rules than those of this store.
/// Whether services may have several lanes is decided when batches are stored, and both kinds cannot be mixed in a
/// service. Services that the ledger cannot have are ignored, because their batches are not submitted.
pub(super) fn check_scheduling(
    store: &Store,
    can_have: impl Fn(&ServiceId) -> bool,
) -> Result<(), StoreError> {
    let mut after = String::new();
    loop {
        let services = find_with_other_lanes(store, &after)?;
        let mut readable =
            services.iter().filter_map(|service| store.unreadable.read(service.name()));
        if readable.any(|service| can_have(&service)) {
            return Err(StoreError::OtherScheduling { expects: store.scheduler.keeps_positions() });
        }
        match services.last() {
            Some(last) if services.len() == PAGE => after = last.name().to_owned(),
            _ => return Ok(()),
        }
    }
}

/// The next services with open batches that were stored with other rules.
fn find_with_other_lanes(store: &Store, after: &str) -> Result<Vec<ServiceRow>, StoreError> {
    let other = if store.scheduler.keeps_positions() { "is null" } else { "is not null" };
    let statement = Statement::new(format!(
        "-- find_other_lanes
         select distinct s.service_id from lanes s
         where s.service_id > ? and s.busy and s.position {other}
         order by s.service_id limit ?"
    ));
    store.pools.read()?.load(&statement.text(after).long(limit(PAGE)))
}
