//! Why waiting batches of a service with several lanes are not submitted.

use std::collections::{BTreeSet, HashMap};

use diesel::prelude::*;
use grid_batch_core::batches::{AddressPrefix, DeclaredAccess, StoredBatch};
use grid_batch_core::queries::WaitReason;
use grid_batch_core::queue::{Ahead, AnyStrategy, Strategy, WaitKind};
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::ahead::load_head;
use crate::{
    scheduling::blocked_by,
    sql::{
        Connection, Store, StoreError,
        query::{BatchRecord, batches_with_lane},
        rows::{batch_id, limit},
        schema::{
            batch_payloads, batches, halts, lanes, missing_transactions, transactions,
            waiting_batches,
        },
    },
};

/// For how many batches of one request the exact cause of the wait is determined.
const MOST_COMPARED: usize = 20;

/// What is ahead of the waiting batches of a service that were stored at these times, by that time. `None`:
/// the service has one lane, and its batches wait in the order of `created_at`.
pub(super) fn load_wait_reasons(
    store: &Store,
    connection: &mut Connection,
    service_id: &ServiceId,
    created_at: &[Timestamp],
) -> Result<Option<HashMap<Timestamp, Ahead>>, StoreError> {
    let rows = load_waiting(connection, service_id, created_at)?;
    if rows.is_empty() {
        let scheduled = has_positions(connection, service_id)?;
        return Ok(scheduled.then(HashMap::new));
    }
    let service = WaitingService::load(store, connection, service_id, &rows)?;
    let mut ahead = HashMap::new();
    for (number, row) in rows.iter().enumerate() {
        let found = service.ahead_of(connection, row, number < MOST_COMPARED)?;
        ahead.insert(Timestamp::from_micros(row.created_at), found);
    }
    Ok(Some(ahead))
}

/// What is stored about a service and about the batches that others wait for.
struct WaitingService {
    strategy: AnyStrategy,
    /// The first batch that is next or under way.
    head: Option<StoredBatch>,
    /// The positions of its open batches, in order: at most one more than is counted.
    positions: Vec<i64>,
    blockers: HashMap<i64, BlockerBatch>,
    /// The first invalid batch that stops others.
    halt: Option<i64>,
}

impl WaitingService {
    fn load(
        store: &Store,
        connection: &mut Connection,
        service_id: &ServiceId,
        rows: &[WaitingBatchRow],
    ) -> Result<Self, StoreError> {
        let halt = load_first_halt(connection, service_id)?;
        let blockers: BTreeSet<i64> =
            rows.iter().filter_map(|row| row.blocker_seq).chain(halt).collect();
        Ok(Self {
            strategy: store.scheduler.strategy(service_id),
            head: load_head(connection, service_id)?,
            positions: load_positions(connection, service_id)?,
            blockers: load_blockers(connection, blockers)?,
            halt,
        })
    }

    fn ahead_of(
        &self,
        connection: &mut Connection,
        row: &WaitingBatchRow,
        compares: bool,
    ) -> Result<Ahead, StoreError> {
        let own = row.position.unwrap_or(i64::MAX);
        let count = self.positions.partition_point(|position| *position < own);
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let more = count > Ahead::MAX_COUNTED;
        let blocker = row.blocker_seq.and_then(|seq| self.blockers.get(&seq));
        let reason = self.reason(connection, row, blocker, compares)?;
        let head = match &reason {
            WaitReason::Conflict { .. } | WaitReason::Dependency { .. } => blocker,
            WaitReason::Halt { .. } => {
                let halted = blocker.filter(|it| it.halted_since.is_some());
                halted.or_else(|| self.halt.and_then(|seq| self.blockers.get(&seq)))
            }
            _ => None,
        };
        let (batch, head_waits) = match (&reason, head) {
            (WaitReason::Behind, _) => (self.head.clone(), false),
            (_, Some(head)) => (Some(head.batch.clone()), head.waits),
            (_, None) => (None, false),
        };
        Ok(Ahead { reason, head: batch, head_waits, count: count.min(Ahead::MAX_COUNTED), more })
    }

    fn reason(
        &self,
        connection: &mut Connection,
        row: &WaitingBatchRow,
        blocker: Option<&BlockerBatch>,
        compares: bool,
    ) -> Result<WaitReason, StoreError> {
        let halted = blocker.and_then(|blocker| blocker.halted_since).or_else(|| {
            let first = self.halt.and_then(|seq| self.blockers.get(&seq));
            first.filter(|_| self.strategy.keeps_order())?.halted_since
        });
        let waits_for = if row.position.is_none() {
            WaitKind::Missing
        } else {
            let blocked_by = blocked_by(row.seq, row.blocker_seq, row.depends_on_blocker);
            self.strategy.waits_for(blocked_by, halted.is_some())
        };
        match (waits_for, row.blocker_seq) {
            (WaitKind::Halt, _) => {
                Ok(halted.map_or(WaitReason::Behind, |since| WaitReason::Halt { since }))
            }
            (WaitKind::Dependency, Some(seq)) => load_dependency(connection, row.seq, seq),
            (WaitKind::Missing | WaitKind::Dependency, _) => load_missing(connection, row.seq),
            (WaitKind::Conflict, Some(blocker)) if compares => {
                let address = load_conflict(connection, row.seq, blocker)?;
                Ok(WaitReason::Conflict { address })
            }
            (WaitKind::Conflict, _) => Ok(WaitReason::Conflict { address: None }),
            (WaitKind::Earlier, _) => Ok(WaitReason::Behind),
            (WaitKind::Lane, _) => Ok(WaitReason::Lane),
        }
    }
}

/// A batch that waits.
#[derive(Queryable, Debug)]
pub(super) struct WaitingBatchRow {
    pub(super) created_at: i64,
    pub(super) seq: i64,
    pub(super) position: Option<i64>,
    pub(super) blocker_seq: Option<i64>,
    pub(super) depends_on_blocker: bool,
}

/// A batch that another one waits for.
pub(super) struct BlockerBatch {
    pub(super) batch: StoredBatch,
    pub(super) waits: bool,
    pub(super) halted_since: Option<Timestamp>,
}

fn load_waiting(
    connection: &mut Connection,
    service_id: &ServiceId,
    created_at: &[Timestamp],
) -> Result<Vec<WaitingBatchRow>, StoreError> {
    let times: Vec<i64> = created_at.iter().map(|at| at.as_micros()).collect();
    let query = batches::table
        .inner_join(waiting_batches::table)
        .filter(batches::service_id.eq(service_id.as_str()))
        .filter(batches::created_at.eq_any(times))
        .select((
            batches::created_at,
            batches::seq,
            waiting_batches::position,
            waiting_batches::blocker_seq,
            waiting_batches::depends_on_blocker,
        ));
    connection.load_query("waiting_of", query)
}

/// Whether the batches of a service have positions.
fn has_positions(connection: &mut Connection, service_id: &ServiceId) -> Result<bool, StoreError> {
    let query = lanes::table
        .filter(lanes::service_id.eq(service_id.as_str()))
        .filter(lanes::position.is_not_null())
        .limit(1)
        .select(lanes::lane);
    let found: Vec<i32> = connection.load_query("has_positions", query)?;
    Ok(!found.is_empty())
}

/// The positions of the first open batches of a service, in order: at most one more than is counted.
pub(super) fn load_positions(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Vec<i64>, StoreError> {
    let in_lanes = lanes::table
        .filter(lanes::service_id.eq(service_id.as_str()))
        .filter(lanes::busy)
        .select(lanes::position);
    let in_lanes: Vec<Option<i64>> = connection.load_query("positions_in_lanes", in_lanes)?;
    let most = usize::try_from(Ahead::MAX_COUNTED).unwrap_or(usize::MAX).saturating_add(1);
    let waiting = waiting_batches::table
        .filter(waiting_batches::service_id.eq(service_id.as_str()))
        .filter(waiting_batches::position.is_not_null())
        .order_by((waiting_batches::service_id, waiting_batches::position))
        .limit(limit(most))
        .select(waiting_batches::position);
    let waiting: Vec<Option<i64>> = connection.load_query("waiting_positions", waiting)?;
    let mut positions: Vec<i64> = in_lanes.into_iter().chain(waiting).flatten().collect();
    positions.sort_unstable();
    positions.truncate(most);
    Ok(positions)
}

pub(super) fn load_first_halt(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<i64>, StoreError> {
    let query = halts::table
        .filter(halts::service_id.eq(service_id.as_str()))
        .order_by((halts::service_id, halts::position))
        .limit(1)
        .select(halts::batch_seq);
    let found: Vec<i64> = connection.load_query("first_halt", query)?;
    Ok(found.first().copied())
}

pub(super) fn load_blockers(
    connection: &mut Connection,
    seqs: BTreeSet<i64>,
) -> Result<HashMap<i64, BlockerBatch>, StoreError> {
    let halt = || halts::table.filter(halts::batch_seq.eq(batches::seq));
    let query = batches_with_lane()
        .filter(batches::seq.eq_any(Vec::from_iter(seqs)))
        .select((BatchRecord::as_select(), halt().select(halts::since).single_value()));
    let rows: Vec<(BatchRecord, Option<i64>)> = connection.load_query("blockers", query)?;
    rows.into_iter()
        .map(|(record, halted_since)| {
            let (seq, waits) = (record.seq(), record.waits_behind_another());
            let halted_since = halted_since.map(Timestamp::from_micros);
            Ok((seq, BlockerBatch { batch: record.into_batch()?, waits, halted_since }))
        })
        .collect()
}

/// The transaction that a batch has missed for the longest time.
fn load_missing(connection: &mut Connection, seq: i64) -> Result<WaitReason, StoreError> {
    let query = missing_transactions::table
        .filter(missing_transactions::batch_seq.eq(seq))
        .filter(missing_transactions::found_at.is_null())
        .order_by((missing_transactions::since, missing_transactions::transaction_id))
        .limit(1)
        .select((
            missing_transactions::transaction_id,
            missing_transactions::since,
            missing_transactions::invalid_seq.is_not_null(),
        ));
    let found: Vec<(Vec<u8>, i64, bool)> = connection.load_query("first_missing", query)?;
    let Some((transaction_id, since, invalid)) = found.first() else { return Ok(WaitReason::Lane) };
    Ok(WaitReason::MissingTransaction {
        transaction_id: batch_id(transaction_id)?,
        since: Timestamp::from_micros(*since),
        invalid: *invalid,
    })
}

/// The transaction of another batch that a batch depends on.
fn load_dependency(
    connection: &mut Connection,
    seq: i64,
    blocker: i64,
) -> Result<WaitReason, StoreError> {
    let query = transactions::table
        .filter(transactions::batch_seq.eq(blocker))
        .order_by(transactions::position)
        .select(transactions::transaction_id);
    let ids: Vec<Vec<u8>> = connection.load_query("transactions_of_blocker", query)?;
    let ids: BTreeSet<ItemId> = ids.iter().map(|id| batch_id(id)).collect::<Result<_, _>>()?;
    let access = load_access(connection, vec![seq])?.remove(&seq);
    let dependencies = access.iter().flat_map(|access| access.dependencies());
    let found = dependencies.copied().find(|id| ids.contains(id));
    Ok(found.map_or(WaitReason::Behind, |transaction_id| WaitReason::Dependency { transaction_id }))
}

/// An address because of which two batches conflict.
fn load_conflict(
    connection: &mut Connection,
    seq: i64,
    blocker: i64,
) -> Result<Option<AddressPrefix>, StoreError> {
    let mut access = load_access(connection, vec![seq, blocker])?;
    let (Some(own), Some(other)) = (access.remove(&seq), access.remove(&blocker)) else {
        return Ok(None);
    };
    Ok(own.conflict_with(&other).cloned())
}

fn load_access(
    connection: &mut Connection,
    seqs: Vec<i64>,
) -> Result<HashMap<i64, DeclaredAccess>, StoreError> {
    let query = batch_payloads::table
        .filter(batch_payloads::batch_seq.eq_any(seqs))
        .select((batch_payloads::batch_seq, batch_payloads::declared_access));
    let rows: Vec<(i64, Option<Vec<u8>>)> = connection.load_query("declared_of", query)?;
    rows.into_iter()
        .map(|(seq, stored)| {
            let everything = || Ok(DeclaredAccess::everything());
            let access = stored.map_or_else(everything, |bytes| DeclaredAccess::decode(&bytes));
            Ok((seq, access.map_err(StoreError::corrupt)?))
        })
        .collect()
}
