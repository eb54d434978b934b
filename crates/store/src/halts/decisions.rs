//! What operators read and decide about invalid batches that stop others.

use std::collections::BTreeSet;

use diesel::prelude::*;
use grid_batch_core::batches::{BatchState, ChangeOutcome, Stale, StoredBatch};
use grid_batch_core::events::EventKind;
use grid_batch_core::queries::{Halt, HaltCursor};
use grid_batch_core::{ServiceId, Timestamp};

use super::table::{self, HaltOrigin, load_halt, remove_halts, set_ends_until};
use crate::{
    batch::{ActionNote, log_without_lane, release_following},
    scheduling::insert_changed,
    sql::{
        Connection, Store, StoreError,
        query::{BatchRecord, lane_holds_batch, single_count},
        rows::limit,
        schema::{batches, halts, lanes, services},
    },
};

impl Store {
    /// Up to `count` invalid batches after `after` that stop others until an operator decides or the stopped batches
    /// have ended, ordered by service and position.
    pub fn halts(&self, after: Option<&HaltCursor>, count: usize) -> Result<Vec<Halt>, StoreError> {
        let mut query = halts::table
            .inner_join(batches::table.left_join(lanes::table.on(lane_holds_batch())))
            .filter(halts::origin.eq(HaltOrigin::Policy.as_str()))
            .order_by((halts::service_id, halts::position))
            .limit(limit(count))
            .select((
                halts::since,
                halts::position,
                halts::ends_until.is_not_null(),
                BatchRecord::as_select(),
            ))
            .into_boxed();
        if let Some(HaltCursor { service_id, position }) = after {
            let service_id = service_id.as_str();
            let later =
                halts::service_id.eq(service_id).and(halts::position.gt(position.as_micros()));
            query = query.filter(halts::service_id.gt(service_id).or(later));
        }
        let rows: Vec<(i64, i64, bool, BatchRecord)> =
            self.pools.read()?.load_query("halts", query)?;
        rows.into_iter()
            .map(|(since, position, is_ending, record)| {
                let (since, position) =
                    (Timestamp::from_micros(since), Timestamp::from_micros(position));
                Ok(Halt { batch: record.into_batch()?, position, since, is_ending })
            })
            .collect()
    }
}

/// Lets the batches that an invalid batch stops continue.
pub(crate) fn continue_after(
    store: &Store,
    connection: &mut Connection,
    batch: &StoredBatch,
    batch_seq: i64,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let service_id = &batch.service_id;
    let action = "what follows it was continued";
    decide(store, connection, batch, batch_seq, action, reason, |connection, halt, positioned| {
        let services = BTreeSet::from([service_id.clone()]);
        remove_halts(connection, [halt.batch.0])?;
        if !positioned {
            return Ok(true);
        }
        let now = store.now();
        let ready = release_following(connection, &store.scheduler, &[halt.batch], services, now)?;
        Ok(!ready.is_empty())
    })
}

/// Decides that the batches that an invalid batch stops now end without being sent. The batches end in steps, in the
/// job that frees dependents.
pub(crate) fn end_following(
    store: &Store,
    connection: &mut Connection,
    batch: &StoredBatch,
    batch_seq: i64,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let service_id = &batch.service_id;
    let action = "what follows it was ended";
    decide(store, connection, batch, batch_seq, action, reason, |connection, halt, positioned| {
        let seq = halt.batch.0;
        let last = last_position(connection, service_id)?;
        set_ends_until(connection, seq, last, HaltOrigin::Policy)?;
        if positioned {
            insert_changed(connection, &store.scheduler, [seq], store.now())?;
        }
        Ok(false)
    })
}

/// Records and logs a decision about the batches that an invalid batch stops. `decide` returns whether a batch became
/// next.
fn decide(
    store: &Store,
    connection: &mut Connection,
    batch: &StoredBatch,
    batch_seq: i64,
    action: &str,
    reason: Option<&str>,
    decide: impl FnOnce(&mut Connection, table::StoredHalt, bool) -> Result<bool, StoreError>,
) -> Result<ChangeOutcome, StoreError> {
    let state = batch.progress.state;
    let halt = load_halt(connection, batch_seq)?.filter(|(halt, _)| halt.ends_until.is_none());
    let Some((halt, positioned)) = halt else {
        return Ok(ChangeOutcome::Stale(Stale::StopsNothing { state }));
    };
    let events = store.scheduler.events();
    let note = ActionNote { kind: EventKind::Decided, action, reason };
    log_without_lane(connection, events, batch, batch_seq, note, store.now())?;
    let next_waits = decide(connection, halt, positioned)?;
    Ok(ChangeOutcome::Applied { state: BatchState::Invalid, next_waits })
}

/// The last position in the order of a service.
fn last_position(connection: &mut Connection, service_id: &ServiceId) -> Result<i64, StoreError> {
    let query = services::table
        .filter(services::service_id.eq(service_id.as_str()))
        .select(services::last_created_at);
    let found: Vec<i64> = connection.load_query("last_position", query)?;
    found.first().copied().ok_or_else(|| StoreError::corrupt("a batch without a service"))
}

/// The number of services in which an invalid batch stops others, and since when the first of them is halted.
pub(crate) fn count_halted(
    connection: &mut Connection,
) -> Result<(u64, Option<Timestamp>), StoreError> {
    use diesel::dsl::{count, min};
    let undecided = || {
        let by_policy = halts::origin.eq(HaltOrigin::Policy.as_str());
        let of_any = halts::table.filter(halts::service_id.gt(""));
        of_any.filter(halts::ends_until.is_null()).filter(by_policy)
    };
    let services = undecided().select(count(halts::service_id).aggregate_distinct());
    let services: Vec<i64> = connection.load_query("halted_services", services)?;
    let first = undecided().select(min(halts::since));
    let first: Vec<Option<i64>> = connection.load_query("halted_since", first)?;
    let since = first.first().copied().flatten().map(Timestamp::from_micros);
    Ok((single_count(&services)?, since))
}
