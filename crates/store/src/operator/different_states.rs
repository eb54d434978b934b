//! Pauses of services whose nodes have different states. The instance that claims a service begins and ends
//! such a pause; operators cannot.

use diesel::{dsl::count, prelude::*};
use grid_batch_core::ServiceId;

use crate::sql::{
    Connection, Statement, Store, StoreError, query::single_count, rows::service_id,
    schema::service_id_claims,
};

/// The services of this instance that are paused because their nodes have different states.
pub(crate) fn services_with_different_states(
    store: &Store,
    instance: &str,
) -> Result<Vec<ServiceId>, StoreError> {
    // There are few, and the index of claims would be a worse choice.
    let query = service_id_claims::table
        .filter(service_id_claims::states_differ_at.is_not_null())
        .select((service_id_claims::service_id, service_id_claims::claimant));
    let found: Vec<(String, Option<String>)> =
        store.pools.read()?.load_query("services_with_different_states", query)?;
    let own = found.iter().filter(|(_, claimant)| claimant.as_deref() == Some(instance));
    own.map(|(name, _)| service_id(name)).collect()
}

/// Begins or ends the pause of a service of this instance. A pause by an operator stays. Returns whether
/// anything changed.
pub(crate) fn set_states_differ(
    store: &Store,
    instance: &str,
    service_id: &ServiceId,
    differ: bool,
) -> Result<bool, StoreError> {
    let dialect = store.dialect();
    let statement = match differ {
        true => {
            let now = store.now().as_micros();
            Statement::new(
                dialect,
                "-- begin_different_states
                 update service_id_claims
                 set states_differ_at = case when paused_at = ? then paused_at + 1 else ? end,
                     paused_at = coalesce(paused_at, ?)
                 where service_id = ? and coalesce(claimant, null) = ? and states_differ_at is null",
            )
            .long(now)
            .long(now)
            .long(now)
        }
        false => Statement::new(
            dialect,
            "-- end_different_states
             update service_id_claims
             set paused_at = nullif(paused_at, states_differ_at), states_differ_at = null
             where service_id = ? and coalesce(claimant, null) = ? and states_differ_at is not null",
        ),
    };
    let statement = statement.text(service_id.as_str()).text(instance);
    Ok(store.pools.write()?.execute(&statement)? > 0)
}

/// Whether the nodes have different states of the service.
pub(super) fn states_differ(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<bool, StoreError> {
    let query = service_id_claims::table
        .filter(service_id_claims::service_id.eq(service_id.as_str()))
        .select(service_id_claims::states_differ_at);
    let found: Vec<Option<i64>> = connection.load_query("states_differ", query)?;
    Ok(found.into_iter().flatten().next().is_some())
}

/// How many services are paused because their nodes have different states.
pub(super) fn count_different_states(connection: &mut Connection) -> Result<u64, StoreError> {
    let query = service_id_claims::table
        .filter(service_id_claims::states_differ_at.is_not_null())
        .select(count(service_id_claims::service_id));
    let found: Vec<i64> = connection.load_query("count_different_states", query)?;
    single_count(&found)
}
