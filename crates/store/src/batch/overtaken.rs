//! Batches of a list of which a later one was committed first. A node that keeps the order of a list found the earlier
//! one invalid, but may have forgotten that in a restart, so evidence must not cause the batch to be sent again.

use std::collections::{BTreeSet, HashMap, HashSet};

use grid_batch_core::batches::{BatchState, Change, Event};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::queue::Strategy;
use grid_batch_core::{ServiceId, Timestamp};

use super::{
    AttemptLog, BatchKey,
    lane::{Lane, Lanes},
    lock_lanes, write_open,
};
use crate::{
    scheduling::{Positioned, find_declared},
    sql::{
        Connection, Scheduler, StoreError, result_row,
        rows::{batch_id, service_id, service_rows},
    },
};

/// Holds open batches until a decision if one of these lanes had a later, conflicting batch that was just committed.
pub(super) fn hold_overtaken(
    connection: &mut Connection,
    scheduler: &Scheduler,
    lanes: &Lanes,
    now: Timestamp,
) -> Result<(), StoreError> {
    let ended = || lanes.values().filter(|lane| lane.changed && lane.progress.state.is_terminal());
    let seqs: HashSet<i64> = ended().map(|lane| lane.batch_seq).collect();
    let overtakes = |lane: &&Lane| {
        lane.progress.state == BatchState::Committed
            && lane.blocker_seq.is_some_and(|blocker| !seqs.contains(&blocker))
            && !scheduler.strategy(&lane.service_id).keeps_order()
    };
    let positioned = |lane: &Lane| Some((lane.batch_seq, lane.service_id.clone(), lane.position?));
    let committed: Vec<Positioned> = ended().filter(overtakes).filter_map(positioned).collect();
    if committed.is_empty() {
        return Ok(());
    }
    let overtaken = find_overtaken(connection, &committed)?;
    let mut lanes = lock_lanes(connection, &overtaken)?;
    let change = |lane: &Lane| {
        let (attempt, evidence) = (lane.progress.attempts, Evidence::Inconclusive);
        let event = Event::Evidence { attempt, evidence };
        Change {
            hold: Some(OVERTAKEN.to_owned()),
            hold_until_decision: true,
            ..Change::new(lane.service_id.clone(), lane.batch_id, event)
        }
    };
    let changes: HashMap<BatchKey, Change> =
        lanes.values().map(|lane| (lane.key(), change(lane))).collect();
    let mut log = AttemptLog::default();
    for lane in lanes.values_mut() {
        let change = &changes[&lane.key()];
        match lane.apply(change, now) {
            Ok(applied) => log.add(lane, change, applied, now),
            // The poller does not follow it now.
            Err(_) => lane.hold_by_operator(OVERTAKEN, now),
        }
    }
    write_open(connection, &lanes.values().collect::<Vec<_>>())?;
    log.write(connection, scheduler.events(), now)
}

const OVERTAKEN: &str = "the ledger has committed a later batch that conflicts with this one and was sent with it: \
     either this one is invalid and the node, which was restarted, has forgotten that, or several nodes publish; decide \
     `invalid`, or release the batch if it may be applied after the later one";

/// The batches in lanes that were sent before these, conflict with one of them, and have not ended.
fn find_overtaken(
    connection: &mut Connection,
    committed: &[Positioned],
) -> Result<BTreeSet<BatchKey>, StoreError> {
    let services: BTreeSet<&ServiceId> = committed.iter().map(|(_, service, _)| service).collect();
    let rows: Vec<OpenRow> = connection.load_rows(
        "-- find_sent_in_lanes
         select s.service_id, s.batch_id, s.batch_seq, s.position
         from {x} join lanes s on s.service_id = x.service_id
         where s.busy and s.attempts > 0 and s.position is not null",
        service_rows(services),
    )?;
    let open = |row: &OpenRow| Ok((row.batch_seq, service_id(&row.service_id)?, row.position));
    let open: Vec<Positioned> = rows.iter().map(open).collect::<Result<_, StoreError>>()?;
    let (open, committed) =
        (find_declared(connection, &open)?, find_declared(connection, committed)?);
    let is_overtaken = |seq: i64| {
        open.iter().filter(|batch| batch.seq == seq).any(|batch| {
            committed.iter().any(|later| {
                later.service_id == batch.service_id
                    && later.position > batch.position
                    && later.access.conflicts_with(&batch.access)
            })
        })
    };
    let overtaken = rows.iter().filter(|row| is_overtaken(row.batch_seq));
    overtaken.map(|row| Ok((service_id(&row.service_id)?, batch_id(&row.batch_id)?))).collect()
}

result_row! {
    struct OpenRow {
        service_id: String,
        batch_id: Vec<u8>,
        batch_seq: i64,
        position: i64,
    }
}
