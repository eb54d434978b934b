//! Instances and the services that they claim: queries, drains, and the release of claims.

use std::collections::HashMap;

use diesel::{dsl::count_star, prelude::*};
use grid_batch_core::claims::InstanceId;
use grid_batch_core::operators::{ActionEffect, ActionOutcome, ActionRefusal, OperatorVerb};
use grid_batch_core::queries::{InstanceLease, OwnedService, ServiceOwner};
use grid_batch_core::{ServiceId, Timestamp};

use super::pauses::lock_pause_of_all;
use crate::sql::{
    Connection, Statement, Store, StoreError,
    rows::{confirmed_ledger, limit, no_lane, service_id, with_submitter},
    schema::{instances as instance_rows, service_id_claims},
};

/// Limit on the instances that are read. There are few, even with those whose rows are not removed yet.
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

impl Store {
    /// The settings of all instances that run, as they were registered with.
    pub fn settings_of_instances(&self) -> Result<Vec<(InstanceId, String)>, StoreError> {
        let query = instance_rows::table
            .filter(instance_rows::instance_id.gt(""))
            .filter(instance_rows::settings.is_not_null())
            .order_by(instance_rows::instance_id)
            .limit(limit(MOST_INSTANCES))
            .select((
                instance_rows::instance_id,
                instance_rows::expiry_1,
                instance_rows::settings.assume_not_null(),
            ));
        let rows: Vec<(String, i64, String)> =
            self.pools.read()?.load_query("settings_of_instances", query)?;
        let now = self.now();
        let running = rows.into_iter().filter(|row| Timestamp::from_micros(row.1) > now);
        Ok(running.map(|(id, _, settings)| (InstanceId::new(id), settings)).collect())
    }
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

/// Begins or ends the drain of a running instance, which is given by its id or its name.
///
/// After that, the instance starts no submission, and releases its services when it renews its lease.
pub(super) fn change_drain(
    connection: &mut Connection,
    verb: OperatorVerb,
    instance: &InstanceId,
) -> Result<ActionOutcome, StoreError> {
    // Without this lock, two instances that are drained at once would each count the other. A round locks the row of
    // its instance in share mode, so it is either taken before or sees the drain.
    lock_pause_of_all(connection)?;
    let dialect = connection.dialect();
    let clock = dialect.clock();
    let lock = dialect.locking("for update of i");
    let statement = Statement::new(format!(
        "-- lock_instance
         select i.instance_id, i.draining from instances i
         where (i.instance_id = ? or i.name = ?) and i.expiry_2 > {clock} {lock}"
    ))
    .text(instance.as_str())
    .text(instance.as_str());
    let rows: Vec<(String, bool)> = connection.load_tuples(&statement)?;
    let Some((instance_id, draining)) = rows.into_iter().next() else {
        return Ok(ActionOutcome::NotFound);
    };
    let instance = InstanceId::new(instance_id);
    let begins = verb == OperatorVerb::Drain;
    let refusal = match (begins, draining) {
        (true, true) => Some(ActionRefusal::AlreadyDraining),
        (false, false) => Some(ActionRefusal::NotDraining),
        (true, false) if !has_other(connection, &instance)? => Some(ActionRefusal::LastInstance),
        _ => None,
    };
    if let Some(refusal) = refusal {
        return Ok(ActionOutcome::Refused(refusal));
    }
    set_draining(connection, &instance, begins)?;
    let (before, after) = if begins { ("running", "draining") } else { ("draining", "running") };
    Ok(ActionOutcome::Done(ActionEffect {
        before: before.to_owned(),
        after: after.to_owned(),
        state: None,
        next_waits: false,
    }))
}

/// Begins or ends the drain of an instance.
pub(crate) fn set_draining(
    connection: &mut Connection,
    instance: &InstanceId,
    draining: bool,
) -> Result<(), StoreError> {
    let statement = Statement::new(if draining {
        "-- begin_drain
         update instances set draining = true where instance_id = ?"
    } else {
        "-- end_drain
         update instances set draining = false where instance_id = ?"
    });
    connection.execute(&statement.text(instance.as_str())).map(drop)
}

/// Whether another instance could take the services.
fn has_other(connection: &mut Connection, instance: &InstanceId) -> Result<bool, StoreError> {
    let (clock, confirmed) = (connection.dialect().clock(), confirmed_ledger("i"));
    let statement = Statement::new(format!(
        "-- count_other_instances
         select count(*) as instances from instances i
         where i.instance_id <> ? and i.expiry_1 > {clock} and not i.draining and {confirmed}"
    ))
    .text(instance.as_str());
    let instances: Vec<i64> = connection.load_column(&statement)?;
    Ok(instances.iter().any(|count| *count > 0))
}

/// Ends the claim of a service, as its owner does at its shutdown, but not while a batch is with a submitter. Any
/// instance may take it next, including the same one.
pub(super) fn release_claim(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<ActionOutcome, StoreError> {
    let lock = connection.dialect().locking("for update of c");
    let statement = Statement::new(format!(
        "-- lock_claim
         select c.claimant from service_id_claims c where c.service_id = ? {lock}"
    ))
    .text(service_id.as_str());
    let claimants: Vec<Option<String>> = connection.load_column(&statement)?;
    let Some(claimant) = claimants.into_iter().next() else {
        return Ok(ActionOutcome::NotFound);
    };
    let Some(owner) = claimant else {
        return Ok(ActionOutcome::Refused(ActionRefusal::NotClaimed));
    };
    // No batch can be taken while the lock is held, so it is certain which batches are with a submitter.
    let not_busy = no_lane("service_id_claims", &with_submitter("s"));
    let statement = Statement::new(format!(
        "-- release_claim
         update service_id_claims set claimant = null
         where service_id_claims.service_id = ? and {not_busy}"
    ))
    .text(service_id.as_str());
    if connection.execute(&statement)? == 0 {
        return Ok(ActionOutcome::Refused(ActionRefusal::ClaimInUse));
    }
    Ok(ActionOutcome::Done(ActionEffect {
        before: format!("claimed by {owner}"),
        after: "claimed by no instance".to_owned(),
        state: None,
        next_waits: true,
    }))
}
