use grid_batch_core::ServiceId;
use grid_batch_core::claims::InstanceId;
use log::{info, warn};

use super::{instances::unregister, takeable::Scope};
use crate::sql::{
    ClaimStore, Connection, Dialect, Statement, Store, StoreError,
    rows::{ServiceRow, limit, no_lane, service_rows, with_submitter},
};

/// Which services an instance releases, among those that have no batch with a submitter.
#[derive(Clone, Copy)]
pub(super) enum ReleaseScope<'a> {
    All,
    /// Only these.
    Named(&'a [ServiceId]),
    /// Only services that also have no batch at the ledger. The instance that sent a batch can follow it best, because
    /// some evidence exists only there.
    Surplus,
}

/// Releases all services without a batch with a submitter, then removes the instance if no claim is
/// left.
pub(super) fn release_all(claims: &ClaimStore) -> Result<usize, StoreError> {
    let instance = claims.instance();
    let released = release_idle(claims, &instance)?;
    if unregister(&claims.store, &instance)? {
        info!(instance:%, services = released; "released all claims of the instance");
    } else {
        warn!(instance:%, services = released;
            "some services have batches with a submitter and were not released: their claims end \
             with the full expiry of the instance");
    }
    Ok(released)
}

/// Releases all services of a draining instance that have no batch with a submitter.
pub(super) fn release_drained(claims: &ClaimStore) -> Result<(), StoreError> {
    let instance = claims.instance();
    let released = release_idle(claims, &instance)?;
    if released > 0 {
        info!(instance:%, services = released; "the instance drains: its services are released");
    }
    Ok(())
}

fn release_idle(claims: &ClaimStore, instance: &InstanceId) -> Result<usize, StoreError> {
    let ClaimStore { store, options, .. } = claims;
    let mut released = 0;
    loop {
        let step = release_step(store, instance, ReleaseScope::All, options.step())?;
        released += step;
        if step == 0 {
            return Ok(released);
        }
    }
}

impl ClaimStore {
    /// Releases those of these services that have no batch with a submitter, and returns how many
    /// were released.
    pub fn release_services(&self, services: &[ServiceId]) -> Result<usize, StoreError> {
        let instance = self.instance();
        let release = |services: &[ServiceId]| {
            release_step(&self.store, &instance, ReleaseScope::Named(services), services.len())
        };
        services.chunks(self.options.step()).map(release).sum()
    }
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
    // This is checked again under the lock, because a batch may have been taken before.
    let not_busy = no_lane("x", &with_submitter("s"));
    let statement = Statement::new(format!(
        "-- release_claims
         update service_id_claims set claimant = null
         from {{x}}
         where service_id_claims.service_id = x.service_id and {not_busy}"
    ))
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
    let statement = Statement::new(format!(
        "{name}
             select f.service_id
             from ({claims}) as f
             where {not_kept}
             limit ?"
    ))
    .text(/* claimant */ instance.as_str())
    .long(limit(count));
    match scope {
        ReleaseScope::Named(services) => statement.rows(service_rows(services)),
        ReleaseScope::All | ReleaseScope::Surplus => statement,
    }
}
