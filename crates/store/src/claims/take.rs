use grid_batch_core::{InstanceId, ServiceId, Takeover};

use super::{
    balance::balance,
    instances::{lock_live_instance, remove_expired_instances},
    notifications::notify_owners,
    scope::Scope,
    takeable::{FoundClaims, find_takeable, lock_takeable},
    takeover::take_over,
};
use crate::sql::{ClaimStore, Store, StoreError, groups::LOCK_LIMIT};

/// Takes up to `count` services, one step in a commit.
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
        let takeover = take_over(store, connection, takeable, instance)?;
        if matches!(scope, Scope::All) && takeover.claims.len() < count {
            remove_expired_instances(connection)?;
        }
        Ok(takeover)
    })
}
