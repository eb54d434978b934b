use grid_batch_core::ServiceId;
use grid_batch_core::claims::{InstanceId, Takeover};

use super::{
    instances::{lock_live_instance, remove_expired_instances},
    notifications::notify_owners,
    release::{ReleaseScope, release_step},
    takeable::{FoundClaims, Scope, find_takeable, lock_takeable},
    takeover::take_over,
};
use crate::sql::{ClaimOptions, ClaimStore, Statement, Store, StoreError, groups::LOCK_LIMIT};

/// Takes up to `count` services, with one commit per step.
pub(super) fn take(claims: &ClaimStore, count: usize) -> Result<Takeover, StoreError> {
    let ClaimStore { store, options, .. } = claims;
    let instance = &claims.instance();
    let mut left =
        if options.fair_share { balance(store, instance, options, count)? } else { count };
    let mut takeover = Takeover::default();
    while left > 0 {
        let step = left.min(options.step());
        let taken = take_step(store, instance, Scope::All, step)?;
        let was_last = taken.claims.len() < step;
        left -= taken.claims.len();
        takeover.extend(taken);
        if was_last {
            break;
        }
    }
    Ok(takeover)
}

/// Takes those of these services that may be taken.
pub(super) fn take_services(
    claims: &ClaimStore,
    services: &[ServiceId],
) -> Result<Takeover, StoreError> {
    let ClaimStore { store, options, .. } = claims;
    let instance = &claims.instance();
    let mut takeover = Takeover::default();
    for services in services.chunks(options.step()) {
        let FoundClaims { takeable, of_others } = find_takeable(store, instance, services)?;
        if !takeable.is_empty() {
            let count = takeable.len();
            takeover.extend(take_step(store, instance, Scope::Named(&takeable), count)?);
        }
        notify_owners(store, &of_others);
    }
    Ok(takeover)
}

fn take_step(
    store: &Store,
    instance: &InstanceId,
    scope: Scope<'_>,
    count: usize,
) -> Result<Takeover, StoreError> {
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        if !lock_live_instance(connection, instance)? {
            return Ok(Takeover::default());
        }
        let takeable = lock_takeable(store, connection, scope, count)?;
        let mut takeover = take_over(store, connection, takeable, instance)?;
        if matches!(scope, Scope::All) && takeover.claims.len() < count {
            takeover.lost = remove_expired_instances(connection)?;
        }
        Ok(takeover)
    })
}

/// How many of `count` services the instance may take without exceeding its fair share. If it has
/// more than its share, releases one step of the surplus.
///
/// Instances that count at the same time may get different numbers; repeated calls even them out.
fn balance(
    store: &Store,
    instance: &InstanceId,
    options: &ClaimOptions,
    count: usize,
) -> Result<usize, StoreError> {
    let clock = store.dialect().clock();
    let statement = Statement::new(format!(
        "-- count_claims
         select (select count(*) from service_id_claims) as services,
             (select count(*) from service_id_claims c where c.claimant = ?) as own,
             (select count(*) from instances i where i.expiry_1 > {clock}
                 and not i.draining) as instances"
    ))
    .text(instance.as_str());
    let rows: Vec<(i64, i64, i64)> = store.pools.read()?.load_tuples(&statement)?;
    let Some((services, own, instances)) = rows.first() else { return Ok(0) };
    let whole = |number: &i64| usize::try_from(*number).unwrap_or(0);
    let (own, share) = (whole(own), whole(services).div_ceil(whole(instances).max(1)));
    if let Some(surplus) = own.checked_sub(share).filter(|surplus| *surplus > 0) {
        release_step(store, instance, ReleaseScope::Surplus, surplus.min(options.step()))?;
    }
    Ok(count.min(share.saturating_sub(own)))
}
