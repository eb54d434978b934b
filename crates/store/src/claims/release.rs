use grid_batch_core::{InstanceId, ServiceId};
use log::{info, warn};

use super::{ClaimOptions, instances::unregister, scope::Scope};
use crate::sql::{
    Connection, Dialect, Statement, Store, StoreError,
    rows::{ServiceRow, limit, no_lane, service_rows, with_submitter},
};

/// Which of its services an instance releases, of those that have no batch with a submitter.
#[derive(Clone, Copy)]
pub(super) enum ReleaseScope<'a> {
    All,
    /// These.
    Named(&'a [ServiceId]),
    /// Only services that have no batch at the ledger either: the instance that sent a batch can
    /// follow it best, because some evidence only exists there.
    Surplus,
}

/// Releases all services without a batch with a submitter, then removes the instance if no claim is
/// left.
pub(crate) fn release_all(
    store: &Store,
    instance: &InstanceId,
    options: &ClaimOptions,
) -> Result<usize, StoreError> {
    let released = release_idle(store, instance, options)?;
    match unregister(store, instance)? {
        true => info!(instance:%, services = released; "released all claims of the instance"),
        false => warn!(instance:%, services = released;
            "some services have batches with a submitter and were not released: their claims end \
             with the full expiry of the instance"),
    }
    Ok(released)
}

/// Releases all services of an instance that drains without a batch with a submitter.
pub(crate) fn release_drained(
    store: &Store,
    instance: &InstanceId,
    options: &ClaimOptions,
) -> Result<(), StoreError> {
    let released = release_idle(store, instance, options)?;
    if released > 0 {
        info!(instance:%, services = released; "the instance drains: its services are released");
    }
    Ok(())
}

fn release_idle(
    store: &Store,
    instance: &InstanceId,
    options: &ClaimOptions,
) -> Result<usize, StoreError> {
    let mut released = 0;
    loop {
        let step = release_step(store, instance, ReleaseScope::All, options.step())?;
        released += step;
        if step == 0 {
            return Ok(released);
        }
    }
}

/// Releases those of these services that have no batch with a submitter.
pub(crate) fn release_services(
    store: &Store,
    instance: &InstanceId,
    options: &ClaimOptions,
    services: &[ServiceId],
) -> Result<usize, StoreError> {
    services
        .chunks(options.step())
        .map(|services| {
            release_step(store, instance, ReleaseScope::Named(services), services.len())
        })
        .sum()
}

/// Releases up to `count` services in one commit.
pub(super) fn release_step(
    store: &Store,
    instance: &InstanceId,
    scope: ReleaseScope<'_>,
    count: usize,
) -> Result<usize, StoreError> {
    store.pools.write()?.write_transaction(|connection| {
        let statement = lock_own_claims(connection.dialect(), instance, scope, count);
        let rows: Vec<ServiceRow> = connection.load(&statement)?;
        let readable = rows.iter().filter_map(|row| store.unreadable.read(row.name()));
        let services: Vec<ServiceId> = readable.collect();
        release_claims(connection, &services)
    })
}

fn release_claims(
    connection: &mut Connection,
    services: &[ServiceId],
) -> Result<usize, StoreError> {
    // Checked again under the lock: a batch may have been taken before it.
    let not_busy = no_lane("x", &with_submitter("s"));
    let statement = Statement::new(
        connection.dialect(),
        format!(
            "-- release_claims
             update service_id_claims set claimant = null
             from {{x}}
             where service_id_claims.service_id = x.service_id and {not_busy}"
        ),
    )
    .rows(service_rows(services));
    connection.execute(&statement)
}

fn lock_own_claims<'a>(
    dialect: Dialect,
    instance: &'a InstanceId,
    scope: ReleaseScope<'a>,
    count: usize,
) -> Statement<'a> {
    let with_submitter = with_submitter("s");
    let (name, claims, kept) = match scope {
        ReleaseScope::All => ("-- lock_own_claims", Scope::All, with_submitter.as_str()),
        ReleaseScope::Named(services) => {
            ("-- lock_own_claims_named", Scope::Named(services), with_submitter.as_str())
        }
        ReleaseScope::Surplus => ("-- lock_surplus_claims", Scope::All, "s.submitted"),
    };
    let claims = claims.locked_claims(dialect, "= ?");
    let not_kept = no_lane("f", kept);
    let statement = Statement::new(
        dialect,
        format!(
            "{name}
             select f.service_id
             from ({claims}) as f
             where {not_kept}
             limit ?"
        ),
    )
    .text(/* claimant */ instance.as_str())
    .long(limit(count));
    match scope {
        ReleaseScope::Named(services) => statement.rows(service_rows(services)),
        ReleaseScope::All | ReleaseScope::Surplus => statement,
    }
}
