//! What keeps waiting batches of a service with several lanes from being submitted.

use std::collections::{BTreeSet, HashMap};

use grid_batch_core::{
    Ahead, AnyStrategy, ServiceId, StoredBatch, Strategy, Timestamp, WaitKind, WaitReason,
};

use super::{
    ahead::load_head,
    wait_reason_rows::{
        BlockerBatch, WaitingRow, has_positions, load_blockers, load_conflict, load_dependency,
        load_first_halt, load_missing, load_positions, load_waiting,
    },
};
use crate::{
    scheduling::blocked_by,
    sql::{Connection, Store, StoreError},
};

/// For how many batches of one question it is looked for what exactly they wait for.
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
    let service = Service::load(store, connection, service_id, &rows)?;
    let mut ahead = HashMap::new();
    for (number, row) in rows.iter().enumerate() {
        let found = service.ahead_of(connection, row, number < MOST_COMPARED)?;
        ahead.insert(Timestamp::from_micros(row.created_at), found);
    }
    Ok(Some(ahead))
}

/// What is stored of a service, and of the batches that others wait for.
struct Service {
    strategy: AnyStrategy,
    /// The first batch that is next or under way.
    head: Option<StoredBatch>,
    /// The positions of its open batches, in order, at most one more than are counted.
    positions: Vec<i64>,
    blockers: HashMap<i64, BlockerBatch>,
    /// The first invalid batch that stops others.
    halt: Option<i64>,
}

impl Service {
    fn load(
        store: &Store,
        connection: &mut Connection,
        service_id: &ServiceId,
        rows: &[WaitingRow],
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
        row: &WaitingRow,
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
        row: &WaitingRow,
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
