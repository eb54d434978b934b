use std::collections::{BTreeSet, HashSet};

use grid_batch_core::batches::{BatchState, Change, ChangeOutcome};
use grid_batch_core::claims::{Claim, InstanceId, Takeover};
use grid_batch_core::{ItemId, ServiceId};

use super::takeable::TakeableService;
use crate::{
    batch::{AttemptLog, fill, record_locked},
    sql::{
        Connection, Rows, Statement, Store, StoreError,
        rows::{AttemptRow, service_id, service_rows, with_submitter},
    },
    submission::owner_lost,
};

/// Takes locked services, and puts their batches with a submitter in doubt. Whether a service has such a batch is
/// certain only under the lock.
pub(super) fn take_over(
    store: &Store,
    connection: &mut Connection,
    takeable: Vec<TakeableService>,
    instance: &InstanceId,
) -> Result<Takeover, StoreError> {
    let mut lost = find_lost_attempts(connection, &takeable)?;
    let busy: HashSet<ServiceId> = lost.iter().map(|change| change.service_id.clone()).collect();
    let services: Vec<ServiceId> = takeable
        .into_iter()
        .filter(|service| service.even_if_busy || !busy.contains(&service.service_id))
        .map(|service| service.service_id)
        .collect();
    let claims = change_claimant(connection, &services, instance)?;
    let taken: HashSet<&ServiceId> = services.iter().collect();
    lost.retain(|change| taken.contains(&change.service_id));
    let in_doubt = put_in_doubt(store, connection, &lost)?;
    fill_taken(store, connection, &services)?;
    Ok(Takeover { claims, in_doubt, lost: Vec::new() })
}

/// The changes for batches with a submitter. The previous owner may have sent them, and its outcomes will be stale.
fn find_lost_attempts(
    connection: &mut Connection,
    takeable: &[TakeableService],
) -> Result<Vec<Change>, StoreError> {
    let with_submitter = with_submitter("s");
    let services = takeable.iter().map(|service| service.service_id.as_str());
    let rows: Vec<AttemptRow> = connection.load_rows(
        format!(
            "-- find_lost_attempts
             select s.service_id, s.batch_id, s.attempts, s.epoch
             from {{x}} join lanes s on s.service_id = x.service_id
             where {with_submitter}"
        ),
        Rows::default().text("service_id", services),
    )?;
    // The epoch changes in the same transaction, so these changes apply to any epoch.
    rows.iter().map(|row| Ok(Change { epoch: None, ..owner_lost(row.submitted()?) })).collect()
}

/// The epoch is stored in the claim and in the lanes, so that a write is fenced by the row that it changes.
fn change_claimant(
    connection: &mut Connection,
    services: &[ServiceId],
    instance: &InstanceId,
) -> Result<Vec<Claim>, StoreError> {
    let change_claimant = Statement::new(
        "-- change_claimant
         update service_id_claims set claimant = ?, epoch = service_id_claims.epoch + 1
         from {x} where service_id_claims.service_id = x.service_id
         returning service_id_claims.service_id, service_id_claims.epoch",
    )
    .text(instance.as_str())
    .rows(service_rows(services));
    let rows: Vec<(String, i64)> = connection.load_tuples(&change_claimant)?;
    connection.execute_rows(
        "-- raise_epochs
         update lanes as s set epoch = x.epoch
         from {x} where s.service_id = x.service_id",
        Rows::default()
            .text("service_id", rows.iter().map(|(service, _)| service.as_str()))
            .long("epoch", rows.iter().map(|(_, epoch)| *epoch)),
    )?;
    let claim = |(service, epoch): &(String, i64)| {
        let epoch = u64::try_from(*epoch).map_err(StoreError::corrupt)?;
        Ok(Claim { service_id: service_id(service)?, epoch })
    };
    rows.iter().map(claim).collect()
}

/// Fills the lanes of the taken services, because their strategy may have changed.
fn fill_taken(
    store: &Store,
    connection: &mut Connection,
    services: &[ServiceId],
) -> Result<(), StoreError> {
    if !store.scheduler.keeps_positions() {
        return Ok(());
    }
    let services: BTreeSet<ServiceId> = services.iter().cloned().collect();
    fill(connection, &store.scheduler, &services, store.now()).map(drop)
}

fn put_in_doubt(
    store: &Store,
    connection: &mut Connection,
    lost: &[Change],
) -> Result<Vec<(ServiceId, ItemId)>, StoreError> {
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    let outcomes =
        record_locked(connection, &store.scheduler, lost, AttemptLog::default(), store.now())?;
    let in_doubt = ChangeOutcome::Applied { state: BatchState::InDoubt, next_waits: false };
    Ok(lost
        .iter()
        .zip(outcomes)
        .filter(|(_, outcome)| *outcome == in_doubt)
        .map(|(change, _)| (change.service_id.clone(), change.batch_id))
        .collect())
}
