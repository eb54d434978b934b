use std::collections::HashMap;

use diesel::{dsl::count_star, prelude::*};
use grid_batch_core::{
    InstanceId, InstanceLease, OwnedService, ServiceId, ServiceOwner, Timestamp,
};

use crate::sql::{
    Connection, Store, StoreError,
    rows::{limit, service_id},
    schema::{instances as instance_rows, service_id_claims},
};

/// There are few instances, also those whose rows are not removed yet.
const MOST_INSTANCES: usize = 10_000;

#[derive(Queryable, Selectable)]
#[diesel(table_name = instance_rows)]
struct InstanceRow {
    instance_id: String,
    name: Option<String>,
    expiry_1: i64,
    expiry_2: i64,
    ledger_id: Option<i32>,
    draining: bool,
}

impl InstanceRow {
    fn into_lease(self) -> InstanceLease {
        InstanceLease {
            instance_id: InstanceId::new(self.instance_id),
            name: self.name,
            lease_ends_at: Timestamp::from_micros(self.expiry_1),
            full_lease_ends_at: Timestamp::from_micros(self.expiry_2),
            ledger_confirmed: self.ledger_id.is_some(),
            draining: self.draining,
        }
    }
}

pub(crate) fn instances(store: &Store) -> Result<Vec<InstanceLease>, StoreError> {
    let query = instance_rows::table
        .filter(instance_rows::instance_id.gt(""))
        .order_by(instance_rows::instance_id)
        .limit(limit(MOST_INSTANCES))
        .select(InstanceRow::as_select());
    let rows: Vec<InstanceRow> = store.pools.read()?.load_query("instances", query)?;
    Ok(rows.into_iter().map(InstanceRow::into_lease).collect())
}

pub(crate) fn claims(
    store: &Store,
    instance: Option<&InstanceId>,
    after: Option<&ServiceId>,
    count: usize,
) -> Result<Vec<OwnedService>, StoreError> {
    let page = service_id_claims::table
        .filter(service_id_claims::service_id.gt(after.map_or("", ServiceId::as_str)))
        .limit(limit(count))
        .select((
            service_id_claims::service_id,
            service_id_claims::claimant,
            service_id_claims::epoch,
        ))
        .into_boxed();
    let page = match instance {
        Some(instance) => page
            .filter(service_id_claims::claimant.eq(instance.as_str()))
            .order_by((service_id_claims::claimant, service_id_claims::service_id)),
        None => page.order_by(service_id_claims::service_id),
    };
    let rows: Vec<(String, Option<String>, i64)> =
        store.pools.read()?.load_query("claims", page)?;
    rows.into_iter()
        .map(|(name, claimant, epoch)| {
            let epoch = u64::try_from(epoch).map_err(StoreError::corrupt)?;
            let instance_id = claimant.map(InstanceId::new);
            Ok(OwnedService { service_id: service_id(&name)?, instance_id, epoch })
        })
        .collect()
}

impl Store {
    /// How many services this instance claims.
    pub fn count_claims(&self, instance: &InstanceId) -> Result<u64, StoreError> {
        let query = service_id_claims::table
            .filter(service_id_claims::claimant.eq(instance.as_str()))
            .select(count_star());
        let counts: Vec<i64> = self.pools.read()?.load_query("own_claims", query)?;
        u64::try_from(counts.first().copied().unwrap_or_default()).map_err(StoreError::corrupt)
    }
}

/// The instance that claims each of these services.
pub(super) fn load_owners(
    connection: &mut Connection,
    names: &[String],
) -> Result<HashMap<String, ServiceOwner>, StoreError> {
    let claimant = service_id_claims::claimant.eq(instance_rows::instance_id.nullable());
    let query = service_id_claims::table
        .inner_join(instance_rows::table.on(claimant))
        .filter(service_id_claims::service_id.eq_any(names.to_vec()))
        .select((
            service_id_claims::service_id,
            service_id_claims::epoch,
            InstanceRow::as_select(),
        ));
    let rows: Vec<(String, i64, InstanceRow)> = connection.load_query("owners", query)?;
    rows.into_iter()
        .map(|(name, epoch, row)| {
            let epoch = u64::try_from(epoch).map_err(StoreError::corrupt)?;
            Ok((name, ServiceOwner { instance: row.into_lease(), epoch }))
        })
        .collect()
}
