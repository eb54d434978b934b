//! The newest open batch before a position: what a batch waits for that covers everything, or whose
//! addresses earlier batches may lack in the index.

use std::collections::HashMap;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable},
};
use grid_batch_core::ServiceId;

use super::{PositionedBatch, conflicts::number_of};
use crate::sql::{Connection, Dialect, Rows, Statement, StoreError};

/// The number of a batch in its group, and the newest open batch before it, as its number and position.
type Newest = (usize, (i64, i64));

/// The newest open batch of the service of each of these batches before a position.
///
/// Those in `group` may be new, and in no table yet.
pub(super) fn find_before(
    connection: &mut Connection,
    group: &[PositionedBatch],
    batches: &[PositionedBatch],
    before: &[(usize, i64)],
) -> Result<Vec<Newest>, StoreError> {
    let mut found = find_new(group, batches, before);
    for sql in SOURCES {
        let statement = find_statement(connection.dialect(), sql, batches, before);
        let rows: Vec<NewestRow> = connection.load(&statement)?;
        for row in rows {
            let number = usize::try_from(row.number).map_err(StoreError::corrupt)?;
            found.extend(row.batch_seq.zip(row.position).map(|newest| (number, newest)));
        }
    }
    Ok(found)
}

fn find_new(
    group: &[PositionedBatch],
    batches: &[PositionedBatch],
    before: &[(usize, i64)],
) -> Vec<Newest> {
    let mut positions: HashMap<&ServiceId, Vec<(i64, i64)>> = HashMap::new();
    for batch in group.iter().filter(|_| !before.is_empty()) {
        positions.entry(&batch.service_id).or_default().push((batch.position, batch.seq));
    }
    positions.values_mut().for_each(|positions| positions.sort_unstable());
    let newest = |(number, before): &(usize, i64)| {
        let positions = positions.get(&batches[*number].service_id)?;
        let earlier = positions.partition_point(|(position, _)| position < before);
        let (position, seq) = positions[..earlier].last()?;
        Some((*number, (*seq, *position)))
    };
    before.iter().filter_map(newest).collect()
}

const SOURCES: [&str; 2] = [
    "-- find_newest_waiting
     select x.number,
         (select w.batch_seq from waiting_batches w
          where w.service_id = x.service_id and w.position is not null and w.position < x.position
          order by w.service_id desc, w.position desc limit 1) as batch_seq,
         (select w.position from waiting_batches w
          where w.service_id = x.service_id and w.position is not null and w.position < x.position
          order by w.service_id desc, w.position desc limit 1) as position
     from {x}",
    // A service has few lanes.
    "-- find_newest_in_lanes
     select x.number,
         (select s.batch_seq from lanes s
          where s.service_id = x.service_id and s.busy and s.position < x.position
          order by s.position desc limit 1) as batch_seq,
         (select s.position from lanes s
          where s.service_id = x.service_id and s.busy and s.position < x.position
          order by s.position desc limit 1) as position
     from {x}",
];

fn find_statement<'a>(
    dialect: Dialect,
    sql: &'static str,
    batches: &'a [PositionedBatch],
    before: &[(usize, i64)],
) -> Statement<'a> {
    Statement::new(dialect, sql).rows(
        Rows::default()
            .long("number", before.iter().map(|(number, _)| number_of(*number)))
            .text(
                "service_id",
                before.iter().map(|(number, _)| batches[*number].service_id.as_str()),
            )
            .long("position", before.iter().map(|(_, before)| *before)),
    )
}

#[derive(QueryableByName)]
struct NewestRow {
    #[diesel(sql_type = BigInt)]
    number: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    batch_seq: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    position: Option<i64>,
}
