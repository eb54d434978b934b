use diesel::{QueryableByName, sql_types::BigInt};
use grid_batch_core::InstanceId;

use super::release::{ReleaseScope, release_step};
use crate::sql::{ClaimOptions, Store, StoreError};

/// How many of `count` services the instance may take without exceeding its fair share. If it has
/// more than its share, releases one step of the surplus.
///
/// Instances that count at the same time may get different numbers; repeated calls even them out.
pub(super) fn balance(
    store: &Store,
    instance: &InstanceId,
    options: &ClaimOptions,
    count: usize,
) -> Result<usize, StoreError> {
    let clock = store.dialect().clock();
    let statement = store
        .statement(format!(
            "-- count_claims
             select (select count(*) from service_id_claims) as services,
                 (select count(*) from service_id_claims c where c.claimant = ?) as own,
                 (select count(*) from instances i where i.expiry_1 > {clock}
                     and not i.draining) as instances"
        ))
        .text(instance.as_str());
    let rows: Vec<CountsRow> = store.pools.read()?.load(&statement)?;
    let Some(CountsRow { services, own, instances }) = rows.first() else { return Ok(0) };
    let whole = |number: &i64| usize::try_from(*number).unwrap_or(0);
    let (own, share) = (whole(own), whole(services).div_ceil(whole(instances).max(1)));
    if let Some(surplus) = own.checked_sub(share).filter(|surplus| *surplus > 0) {
        release_step(store, instance, ReleaseScope::Surplus, surplus.min(options.step()))?;
    }
    Ok(count.min(share.saturating_sub(own)))
}

#[derive(QueryableByName)]
struct CountsRow {
    #[diesel(sql_type = BigInt)]
    services: i64,
    #[diesel(sql_type = BigInt)]
    own: i64,
    #[diesel(sql_type = BigInt)]
    instances: i64,
}
