//! Pauses of services whose nodes have different states. The instance that claims a service begins and ends
//! such a pause; operators cannot.

use diesel::{dsl::count, prelude::*};
use grid_batch_core::ServiceId;

use crate::sql::{
    ClaimStore, Connection, Statement, StoreError, query::single_count, rows::service_id,
    schema::service_id_claims,
};

impl ClaimStore {
    /// The claimed services that are paused because their nodes have different states.
    pub fn services_with_different_states(&self) -> Result<Vec<ServiceId>, StoreError> {
        // There are few, and the index of claims would be a worse choice.
        let query = service_id_claims::table
            .filter(service_id_claims::states_differ_at.is_not_null())
            .select((service_id_claims::service_id, service_id_claims::claimant));
        let found: Vec<(String, Option<String>)> =
            self.store.pools.read()?.load_query("services_with_different_states", query)?;
        let instance = self.instance();
        let is_own = |claimant: &Option<String>| claimant.as_deref() == Some(instance.as_str());
        let own = found.iter().filter(|(_, claimant)| is_own(claimant));
        own.map(|(name, _)| service_id(name)).collect()
    }

    /// Begins or ends the pause of a claimed service whose nodes have different states. An operator's
    /// pause is another one. Returns whether anything changed.
    ///
    /// While it lasts, no batch of the service is taken, and no operator can have one submitted again.
    pub fn set_states_differ(
        &self,
        service_id: &ServiceId,
        differ: bool,
    ) -> Result<bool, StoreError> {
        let dialect = self.store.dialect();
        let statement = if differ {
            let now = self.store.now().as_micros();
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
        } else {
            Statement::new(
                dialect,
                "-- end_different_states
                 update service_id_claims
                 set paused_at = nullif(paused_at, states_differ_at), states_differ_at = null
                 where service_id = ? and coalesce(claimant, null) = ? and states_differ_at is not null",
            )
        };
        let instance = self.instance();
        let statement = statement.text(service_id.as_str()).text(instance.as_str());
        Ok(self.store.pools.write()?.execute(&statement)? > 0)
    }
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
