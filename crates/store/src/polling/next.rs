use grid_batch_core::{ItemId, ServiceId};

use crate::sql::{
    Statement, Store, StoreError,
    rows::{batch_id, claimed_by, service_id, service_rows},
};

/// The batches that follow those in the lanes of these services, if the instance claims them.
pub(super) fn next_batches(
    store: &Store,
    instance: &str,
    services: &[ServiceId],
) -> Result<Vec<(ServiceId, ItemId)>, StoreError> {
    let statement = next_batches_statement(instance, services);
    let mut connection = store.pools.read()?;
    let mut rows: Vec<NextRow> = Vec::new();
    if store.scheduler.keeps_positions() {
        rows.extend(
            connection.load_tuples::<NextRow>(&next_dependents_statement(instance, services))?,
        );
        for service in services {
            let statement = next_free_batches_statement(instance, service);
            rows.extend(connection.load_tuples::<NextRow>(&statement)?);
        }
    } else {
        rows.extend(connection.load_tuples::<NextRow>(&statement)?);
    }
    rows.iter().map(|(service, id)| Ok((service_id(service)?, batch_id(id)?))).collect()
}

/// Limit on the number of batches of a service in one request.
const NEXT_IN_ORDER: i64 = 8;

/// The batches after the head, in the order in which `install_next_heads` selects them.
fn next_batches_statement<'a>(instance: &'a str, services: &'a [ServiceId]) -> Statement<'a> {
    let claimed = claimed_by("s");
    Statement::new(format!(
        "-- next_batches
         select b.service_id, b.batch_id
         from {{x}} join lanes s on s.service_id = x.service_id
         join batches b on b.service_id = s.service_id and b.ended_at is null
             and b.created_at > s.created_at and b.created_at <= coalesce((
                 select n.created_at from batches n
                 where n.service_id = s.service_id
                     and n.created_at > s.created_at and n.ended_at is null
                 order by n.service_id, n.created_at limit 1 offset ?), ?)
         where s.busy and {claimed}
         order by b.service_id, b.created_at"
    ))
    .rows(service_rows(services))
    .long(/* offset */ NEXT_IN_ORDER - 1)
    .long(/* no limit */ i64::MAX)
    .text(/* claimant */ instance)
}

/// For each batch in a lane, the first batch that waits for it.
fn next_dependents_statement<'a>(instance: &'a str, services: &'a [ServiceId]) -> Statement<'a> {
    let claimed = claimed_by("s");
    Statement::new(format!(
        "-- next_dependents
         select b.service_id, b.batch_id
         from {{x}} join lanes s on s.service_id = x.service_id
         join batches b on b.seq = (
             select w.batch_seq from waiting_batches w
             where w.blocker_seq = s.batch_seq
             order by w.blocker_seq, w.position, w.batch_seq limit 1)
         where s.busy and b.service_id = s.service_id and {claimed}"
    ))
    .rows(service_rows(services))
    .text(/* claimant */ instance)
}

/// Limit on the number of batches of a service that only wait for a lane in one request.
const NEXT_OF_SERVICE: i64 = 100;

/// The first batches of a service that only wait for a lane.
fn next_free_batches_statement<'a>(instance: &'a str, service: &'a ServiceId) -> Statement<'a> {
    let claimed = claimed_by("w");
    Statement::new(
        format!(
            "-- next_free_batches
             select b.service_id, b.batch_id
             from waiting_batches w join batches b on b.seq = w.batch_seq
             where w.service_id = ? and w.position is not null and w.blocker_seq is null and {claimed}
             order by w.service_id, w.position limit ?"
        ),
    )
    .text(service.as_str())
    .text(/* claimant */ instance)
    .long(NEXT_OF_SERVICE)
}

/// A service and a batch of it.
type NextRow = (String, Vec<u8>);
