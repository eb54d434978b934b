//! Uses the index to find the batch that must end before another one. A batch that covers everything, or covers
//! addresses that earlier batches may lack in the index, waits for the newest open batch before it.

use std::collections::{HashMap, HashSet};

use grid_batch_core::ServiceId;

use super::index::{Entry, IndexedAccess, Lengths, PositionedBatch, ServiceLengths};
use crate::{
    halts,
    sql::{Connection, Rows, StoreError, result_row},
};

/// The batch that another one waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Blocker {
    pub(crate) position: i64,
    pub(crate) seq: i64,
    /// Whether the waiting batch depends on a transaction of the blocker.
    pub(crate) is_dependency: bool,
    /// Set if the blocker is invalid and the batches that wait for it end, up to this position.
    pub(crate) ends_until: Option<i64>,
}

impl Blocker {
    fn conflict(seq: i64, position: i64) -> Self {
        Self { position, seq, is_dependency: false, ends_until: None }
    }

    /// Whether the blocker is invalid and an operator has ended its followers only up to a position before this batch.
    fn is_over_for(&self, batch: &PositionedBatch) -> bool {
        self.ends_until.is_some_and(|until| until < batch.position)
    }

    /// A batch, possibly of another service, with a transaction that the waiting one depends on.
    pub(super) fn dependency(seq: i64) -> Self {
        Self { position: 0, seq, is_dependency: true, ends_until: None }
    }
}

/// For each of these batches, the last earlier open batch of its service that it conflicts with, by the number of the
/// waiting batch.
///
/// Waiting only for the last one needs one edge per batch, however many conflict. Earlier ones end before it or are
/// found when it has ended.
///
/// `group` contains these batches and the others of their commit, which may not be in any table yet.
pub(super) fn find(
    connection: &mut Connection,
    group: &[PositionedBatch],
    batches: &[PositionedBatch],
    lengths: &ServiceLengths,
) -> Result<HashMap<i64, Blocker>, StoreError> {
    let mut entries: Vec<(usize, Entry)> = Vec::new();
    let mut incomplete: Vec<(usize, i64)> = Vec::new();
    let none = Lengths::default();
    for (number, batch) in batches.iter().enumerate() {
        let lengths = lengths.get(&batch.service_id).unwrap_or(&none);
        let access = IndexedAccess::of(&batch.access, lengths);
        entries.extend(access.conflicting(lengths).into_iter().map(|entry| (number, entry)));
        let before = access.incomplete_before(lengths);
        incomplete.extend(before.map(|before| (number, before.min(batch.position))));
    }
    let mut found: HashMap<i64, Blocker> = HashMap::new();
    let mut keep = |number: usize, blocker: Blocker| {
        let last = found.entry(batches[number].seq).or_insert(blocker);
        *last = blocker.max(*last);
    };
    let rows = find_in_index(connection, FIND_CONFLICTS, batches, &entries)?;
    let (over, rows): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|(number, blocker)| blocker.is_over_for(&batches[*number]));
    if !over.is_empty() {
        let again: HashSet<usize> = over.into_iter().map(|(number, _)| number).collect();
        entries.retain(|(number, _)| again.contains(number));
        for (number, blocker) in find_in_index(connection, FIND_OTHERS, batches, &entries)? {
            keep(number, blocker);
        }
    }
    for (number, blocker) in rows {
        keep(number, blocker);
    }
    for (number, (seq, position)) in find_newest_before(connection, group, batches, &incomplete)? {
        keep(number, Blocker::conflict(seq, position));
    }
    for (number, halt) in halts::find_last_before(connection, batches, &incomplete)? {
        let (seq, _, position) = halt.batch;
        let ends_until = halt.ends_until;
        keep(number, Blocker { ends_until, ..Blocker::conflict(seq, position) });
    }
    Ok(found)
}

/// The last earlier batch with each row.
const FIND_CONFLICTS: &str = "-- find_conflicts
     select x.number, d.batch_seq, d.position,
         (select h.ends_until from halts h where h.batch_seq = d.batch_seq) as ends_until
     from {x} join declared_addresses d
         on d.service_id = x.service_id and d.address = x.address and d.kind = x.kind
             and d.position = (
                 select n.position from declared_addresses n
                 where n.service_id = x.service_id and n.address = x.address
                     and n.kind = x.kind and n.position < x.position
                 order by n.position desc limit 1)";

/// The same without invalid batches whose followers end at an earlier position. It reads all such batches that have the
/// row, so it is used only if the last batch is one of them.
const FIND_OTHERS: &str = "-- find_other_conflicts
     select x.number, d.batch_seq, d.position,
         (select h.ends_until from halts h where h.batch_seq = d.batch_seq) as ends_until
     from {x} join declared_addresses d
         on d.service_id = x.service_id and d.address = x.address and d.kind = x.kind
             and d.position = (
                 select n.position from declared_addresses n
                 where n.service_id = x.service_id and n.address = x.address
                     and n.kind = x.kind and n.position < x.position
                     and coalesce(
                         (select h.ends_until from halts h where h.batch_seq = n.batch_seq),
                         x.position) >= x.position
                 order by n.position desc limit 1)";

fn find_in_index(
    connection: &mut Connection,
    sql: &'static str,
    batches: &[PositionedBatch],
    entries: &[(usize, Entry)],
) -> Result<Vec<(usize, Blocker)>, StoreError> {
    let of = |(number, _): &(usize, Entry)| &batches[*number];
    let rows: Vec<ConflictRow> = connection.load_rows(
        sql,
        Rows::default()
            .long("number", entries.iter().map(|(number, _)| number_of(*number)))
            .text("service_id", entries.iter().map(|entry| of(entry).service_id.as_str()))
            .text("address", entries.iter().map(|(_, (address, _))| address.as_str()))
            .int("kind", entries.iter().map(|(_, (_, kind))| kind.as_i32()))
            .long("position", entries.iter().map(|entry| of(entry).position)),
    )?;
    rows.into_iter()
        .map(|row| {
            let number = usize::try_from(row.number).map_err(StoreError::corrupt)?;
            let blocker = Blocker::conflict(row.batch_seq, row.position);
            Ok((number, Blocker { ends_until: row.ends_until, ..blocker }))
        })
        .collect()
}

pub(crate) fn number_of(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

result_row! {
    struct ConflictRow {
        number: i64,
        batch_seq: i64,
        position: i64,
        ends_until: Option<i64>,
    }
}

/// The number of a batch in its group, and the number and position of the newest open batch before it.
type Newest = (usize, (i64, i64));

/// For each of these batches, the newest open batch of its service before a position.
///
/// Batches in `group` may be new and not be in any table yet.
pub(super) fn find_newest_before(
    connection: &mut Connection,
    group: &[PositionedBatch],
    batches: &[PositionedBatch],
    before: &[(usize, i64)],
) -> Result<Vec<Newest>, StoreError> {
    let mut found = find_new(group, batches, before);
    for sql in SOURCES {
        let rows: Vec<(i64, Option<i64>, Option<i64>)> = connection.load_row_tuples(
            sql,
            Rows::default()
                .long("number", before.iter().map(|(number, _)| number_of(*number)))
                .text("service_id", before.iter().map(|it| batches[it.0].service_id.as_str()))
                .long("position", before.iter().map(|(_, before)| *before)),
        )?;
        for (number, batch_seq, position) in rows {
            let number = usize::try_from(number).map_err(StoreError::corrupt)?;
            found.extend(batch_seq.zip(position).map(|newest| (number, newest)));
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
