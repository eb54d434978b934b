//! The index of what open batches declare. A row contains an address and how a batch accesses it. Addresses are
//! distinguished only at the lengths that their service has in use.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use grid_batch_core::ServiceId;
use grid_batch_core::batches::{AddressPrefix, DeclaredAccess};

use super::Positioned;
use crate::sql::{
    Connection, Rows, StoreError,
    rows::{service_id, service_rows},
};

/// An open batch that has a position in the order of its service.
#[derive(Debug, Clone)]
pub(crate) struct PositionedBatch {
    pub(crate) seq: i64,
    pub(crate) service_id: ServiceId,
    pub(crate) position: i64,
    pub(crate) access: DeclaredAccess,
}

/// What a batch declares, from its stored form. If there is none, the batch conflicts with everything.
pub(super) fn decode(stored: Option<&[u8]>) -> Result<DeclaredAccess, StoreError> {
    stored.map_or_else(
        || Ok(DeclaredAccess::everything()),
        |bytes| DeclaredAccess::decode(bytes).map_err(StoreError::corrupt),
    )
}

/// What a row of `declared_addresses` says about its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AccessKind {
    /// The batch writes the address.
    Writes,
    /// The batch reads the address.
    Reads,
    /// The batch writes some longer address.
    WritesBelow,
    /// The batch reads some longer address.
    ReadsBelow,
}

impl AccessKind {
    pub(super) fn as_i32(self) -> i32 {
        match self {
            Self::Writes => 0,
            Self::Reads => 1,
            Self::WritesBelow => 2,
            Self::ReadsBelow => 3,
        }
    }
}

/// An address with what a row says about it.
pub(super) type Entry = (String, AccessKind);

/// What a batch declares, restricted to addresses of lengths that its service has in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexedAccess(DeclaredAccess);

impl IndexedAccess {
    /// Addresses of other lengths are cut to the next shorter one in use.
    pub(super) fn of(access: &DeclaredAccess, lengths: &Lengths) -> Self {
        let cut = |prefixes: &[AddressPrefix]| -> Vec<AddressPrefix> {
            let text = |prefix: &AddressPrefix| {
                let text = prefix.as_str();
                AddressPrefix::new(&text[..lengths.cut(text.len())])
            };
            prefixes.iter().map(text).collect()
        };
        Self(DeclaredAccess::new(cut(access.reads()), cut(access.writes()), []))
    }

    /// The rows of the batch.
    pub(super) fn rows(&self, lengths: &Lengths) -> BTreeSet<Entry> {
        let mut rows = BTreeSet::new();
        for (prefixes, kind, below) in [
            (self.0.writes(), AccessKind::Writes, AccessKind::WritesBelow),
            (self.0.reads(), AccessKind::Reads, AccessKind::ReadsBelow),
        ] {
            for prefix in prefixes {
                let text = prefix.as_str();
                rows.insert((text.to_owned(), kind));
                rows.extend(lengths.shorter(text.len()).map(|l| (text[..l].to_owned(), below)));
            }
        }
        rows
    }

    /// The rows that conflict with this batch.
    pub(super) fn conflicting(&self, lengths: &Lengths) -> BTreeSet<Entry> {
        let mut entries = BTreeSet::new();
        for (prefixes, same, above) in [
            (
                self.0.writes(),
                [
                    AccessKind::Writes,
                    AccessKind::Reads,
                    AccessKind::WritesBelow,
                    AccessKind::ReadsBelow,
                ]
                .as_slice(),
                [AccessKind::Writes, AccessKind::Reads].as_slice(),
            ),
            (self.0.reads(), &[AccessKind::Writes, AccessKind::WritesBelow], &[AccessKind::Writes]),
        ] {
            for prefix in prefixes {
                let text = prefix.as_str();
                entries.extend(same.iter().map(|kind| (text.to_owned(), *kind)));
                for length in [0].into_iter().chain(lengths.shorter(text.len())) {
                    entries.extend(above.iter().map(|kind| (text[..length].to_owned(), *kind)));
                }
            }
        }
        entries
    }

    /// Batches before this position may lack rows that this batch searches; `None`: no batch lacks any.
    pub(super) fn incomplete_before(&self, lengths: &Lengths) -> Option<i64> {
        let prefixes = self.0.writes().iter().chain(self.0.reads());
        prefixes.filter_map(|prefix| lengths.incomplete_before(prefix.as_str().len())).max()
    }
}

/// The lengths of the addresses that batches of a service have declared, each with the position from which on all
/// batches have rows for it.
///
/// Two lengths are always in use and not stored. No address is longer than a complete one, so batches have no rows of
/// longer addresses for that length. Rows for the empty address would be needed for every batch, so a batch that covers
/// everything waits for the newest batch before it instead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lengths(BTreeMap<usize, i64>);

/// The lengths of each service.
pub(super) type ServiceLengths = HashMap<ServiceId, Lengths>;

impl Lengths {
    /// Limit on the lengths that are stored for one service. Each adds rows to all batches.
    const MOST: usize = 8;

    /// Whether the limit is reached, so that addresses of other lengths are cut.
    fn are_used_up(&self) -> bool {
        self.0.len() >= Self::MOST
    }

    /// Adds a length, if there is room. Returns whether it is new.
    fn add(&mut self, length: usize, since: i64) -> bool {
        let is_new = !self.is_in_use(length) && !self.are_used_up();
        if is_new {
            self.0.insert(length, since);
        }
        is_new
    }

    fn is_in_use(&self, length: usize) -> bool {
        length == 0 || length == AddressPrefix::LONGEST || self.0.contains_key(&length)
    }

    /// The length to which an address of this length is cut.
    pub(super) fn cut(&self, length: usize) -> usize {
        if self.is_in_use(length) { length } else { self.shorter(length).next_back().unwrap_or(0) }
    }

    /// The stored lengths that are shorter than this one.
    pub(super) fn shorter(&self, length: usize) -> impl DoubleEndedIterator<Item = usize> {
        self.0.range(..length).map(|(length, _)| *length)
    }

    /// Batches before this position may lack rows for this length.
    pub(super) fn incomplete_before(&self, length: usize) -> Option<i64> {
        match length {
            0 => Some(i64::MAX),
            AddressPrefix::LONGEST => None,
            _ => Some(self.0.get(&length).copied().unwrap_or(i64::MAX)),
        }
    }
}

/// Reads the lengths of services.
pub(super) fn load_lengths<'a>(
    connection: &mut Connection,
    services: impl IntoIterator<Item = &'a ServiceId>,
) -> Result<ServiceLengths, StoreError> {
    let rows: Vec<(String, i32, i64)> = connection.load_row_tuples(
        "-- load_address_lengths
         select l.service_id, l.length, l.since
         from {x} join address_lengths l on l.service_id = x.service_id",
        service_rows(services),
    )?;
    let mut lengths = ServiceLengths::new();
    for (service, length, since) in rows {
        let length = usize::try_from(length).map_err(StoreError::corrupt)?;
        lengths.entry(service_id(&service)?).or_default().0.insert(length, since);
    }
    Ok(lengths)
}

/// Reads the lengths of the services of new batches, and adds those of the new batches.
pub(super) fn load_lengths_with_new(
    connection: &mut Connection,
    batches: &[PositionedBatch],
) -> Result<ServiceLengths, StoreError> {
    let mut lengths = load_lengths(connection, batches.iter().map(|batch| &batch.service_id))?;
    let mut first: HashMap<&ServiceId, i64> = HashMap::new();
    for batch in batches {
        let first = first.entry(&batch.service_id).or_insert(batch.position);
        *first = batch.position.min(*first);
    }
    let mut new: BTreeSet<(&ServiceId, usize, i64)> = BTreeSet::new();
    for batch in batches {
        let of_service = lengths.entry(batch.service_id.clone()).or_default();
        let since = first[&batch.service_id];
        for prefix in batch.access.writes().iter().chain(batch.access.reads()) {
            let length = prefix.as_str().len();
            if of_service.add(length, since) {
                new.insert((&batch.service_id, length, since));
            }
        }
    }
    insert_lengths(connection, &new)?;
    Ok(lengths)
}

/// Removes the lengths of locked services that have reached the limit and whose batches no longer have rows.
/// Otherwise, a client could use them up for good. While batches have rows, the lengths are needed to find these.
pub(super) fn remove_unused_lengths(
    connection: &mut Connection,
    lengths: &ServiceLengths,
) -> Result<(), StoreError> {
    let used_up: BTreeSet<&ServiceId> =
        lengths.iter().filter(|(_, lengths)| lengths.are_used_up()).map(|(id, _)| id).collect();
    if used_up.is_empty() {
        return Ok(());
    }
    connection.execute_rows(
        "-- remove_address_lengths
         delete from address_lengths
         where service_id in (
             select x.service_id from {x}
             where not exists (
                 select 1 from declared_addresses d where d.service_id = x.service_id))",
        service_rows(used_up),
    )
}

fn insert_lengths(
    connection: &mut Connection,
    new: &BTreeSet<(&ServiceId, usize, i64)>,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- insert_address_lengths
         insert into address_lengths (service_id, length, since)
         select service_id, length, since from {x}",
        Rows::default()
            .text("service_id", new.iter().map(|row| row.0.as_str()))
            .int("length", new.iter().map(|row| i32::try_from(row.1).unwrap_or(i32::MAX)))
            .long("since", new.iter().map(|row| row.2)),
    )
}

/// Inserts the rows of batches that got their positions.
pub(super) fn insert_addresses(
    connection: &mut Connection,
    batches: &[PositionedBatch],
    lengths: &ServiceLengths,
) -> Result<(), StoreError> {
    let rows = rows_of(batches, lengths);
    connection.execute_rows(
        "-- insert_declared_addresses
         insert into declared_addresses (service_id, address, kind, position, batch_seq)
         select service_id, address, kind, position, batch_seq from {x}",
        key_rows(&rows).long("batch_seq", rows.iter().map(|(batch, _)| batch.seq)),
    )
}

/// Removes the rows of ended batches by their keys. Lengths that came into use after a batch was stored only add keys
/// of rows that it does not have.
pub(crate) fn remove_addresses(
    connection: &mut Connection,
    ended: &[PositionedBatch],
) -> Result<(), StoreError> {
    if ended.is_empty() {
        return Ok(());
    }
    let lengths = load_lengths(connection, ended.iter().map(|batch| &batch.service_id))?;
    let rows = rows_of(ended, &lengths);
    connection.execute_rows(
        "-- remove_declared_addresses
         delete from declared_addresses where (service_id, address, kind, position) in (
             select x.service_id, x.address, x.kind, x.position from {x})",
        key_rows(&rows),
    )?;
    remove_unused_lengths(connection, &lengths)
}

/// What batches declare, with their positions.
pub(crate) fn find_declared(
    connection: &mut Connection,
    batches: &[Positioned],
) -> Result<Vec<PositionedBatch>, StoreError> {
    let rows: Vec<(i64, Option<Vec<u8>>)> = connection.load_row_tuples(
        "-- find_declared
         select p.batch_seq, p.declared_access
         from {x} join batch_payloads p on p.batch_seq = x.batch_seq",
        Rows::default().long("batch_seq", batches.iter().map(|(seq, ..)| *seq)),
    )?;
    let mut declared: HashMap<i64, DeclaredAccess> = rows
        .iter()
        .map(|(seq, declared)| Ok((*seq, decode(declared.as_deref())?)))
        .collect::<Result<_, StoreError>>()?;
    let positioned = |(seq, service_id, position): &Positioned| {
        let access = declared.remove(seq);
        let access = access.ok_or_else(|| StoreError::corrupt("a batch without bytes"))?;
        Ok(PositionedBatch {
            seq: *seq,
            service_id: service_id.clone(),
            position: *position,
            access,
        })
    };
    batches.iter().map(positioned).collect()
}

type IndexRow<'a> = (&'a PositionedBatch, Entry);

fn rows_of<'a>(batches: &'a [PositionedBatch], lengths: &ServiceLengths) -> Vec<IndexRow<'a>> {
    let none = Lengths::default();
    let rows = |batch: &'a PositionedBatch| {
        let lengths = lengths.get(&batch.service_id).unwrap_or(&none);
        let rows = IndexedAccess::of(&batch.access, lengths).rows(lengths);
        rows.into_iter().map(move |entry| (batch, entry))
    };
    batches.iter().flat_map(rows).collect()
}

fn key_rows<'r>(rows: &'r [IndexRow<'_>]) -> Rows<'r> {
    Rows::default()
        .text("service_id", rows.iter().map(|(batch, _)| batch.service_id.as_str()))
        .text("address", rows.iter().map(|(_, (address, _))| address.as_str()))
        .int("kind", rows.iter().map(|(_, (_, kind))| kind.as_i32()))
        .long("position", rows.iter().map(|(batch, _)| batch.position))
}
