//! Invalid batches that stop others in services with one lane, whose batches wait in the order of
//! `created_at`.

use grid_batch_core::Timestamp;

use super::Stops;
use crate::{
    scheduling::HaltOrigin,
    sql::{Connection, Rows, Statement, StoreError},
};

/// Records those of these batches, which have ended, that stop others.
pub(super) fn stop_in_order(
    connection: &mut Connection,
    ended: impl Iterator<Item = (i64, Stops)>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let origin = |(seq, stops)| match stops {
        Stops::Nothing | Stops::FollowingForGood(_) => None,
        Stops::Following => Some((seq, HaltOrigin::Policy)),
        Stops::UntilPolicy => Some((seq, HaltOrigin::Command)),
    };
    let halts: Vec<(i64, HaltOrigin)> = ended.filter_map(origin).collect();
    if halts.is_empty() {
        return Ok(());
    }
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_halts_in_order
         insert into halts (batch_seq, service_id, position, since, origin, positioned)
         select b.seq, b.service_id, b.created_at, x.since, x.origin, false
         from {x} join batches b on b.seq = x.batch_seq",
    )
    .rows(
        Rows::default()
            .long("batch_seq", halts.iter().map(|(seq, _)| *seq))
            .text("origin", halts.iter().map(|(_, origin)| origin.as_str()))
            .long("since", halts.iter().map(|_| now.as_micros())),
    );
    connection.execute(&statement).map(drop)
}
