use std::collections::{BTreeMap, BTreeSet, HashMap};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Integer, Text},
};
use grid_batch_core::{AddressPrefix, ServiceId};

use super::PositionedBatch;
use crate::sql::{
    Connection, Rows, Statement, StoreError,
    rows::{service_id, service_rows},
};

/// The lengths of the addresses that batches of a service have declared, each with the position from which
/// on all batches have their rows for it.
///
/// Two lengths are always in use and not stored. No address is longer than a whole one, so batches have no
/// rows for that. Rows for the empty address would be on every batch: what covers everything conflicts
/// with the newest batch before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lengths(BTreeMap<usize, i64>);

/// The lengths of each service.
pub(super) type ServiceLengths = HashMap<ServiceId, Lengths>;

impl Lengths {
    /// The most that are stored of one service. Each adds rows to all batches.
    const MOST: usize = 8;

    /// Whether longer addresses of other lengths are cut.
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
        match self.is_in_use(length) {
            true => length,
            false => self.shorter(length).next_back().unwrap_or(0),
        }
    }

    /// The stored lengths that are shorter than this one.
    pub(super) fn shorter(&self, length: usize) -> impl DoubleEndedIterator<Item = usize> {
        self.0.range(..length).map(|(length, _)| *length)
    }

    /// The batches before this position may lack rows for this length.
    pub(super) fn incomplete_before(&self, length: usize) -> Option<i64> {
        match length {
            0 => Some(i64::MAX),
            AddressPrefix::LONGEST => None,
            _ => Some(self.0.get(&length).copied().unwrap_or(i64::MAX)),
        }
    }
}

/// Reads the lengths of services.
pub(super) fn load<'a>(
    connection: &mut Connection,
    services: impl IntoIterator<Item = &'a ServiceId>,
) -> Result<ServiceLengths, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- load_address_lengths
         select l.service_id, l.length, l.since
         from {x} join address_lengths l on l.service_id = x.service_id",
    )
    .rows(service_rows(services));
    let rows: Vec<LengthRow> = connection.load(&statement)?;
    let mut lengths = ServiceLengths::new();
    for row in rows {
        let length = usize::try_from(row.length).map_err(StoreError::corrupt)?;
        lengths.entry(service_id(&row.service_id)?).or_default().0.insert(length, row.since);
    }
    Ok(lengths)
}

/// Reads the lengths of the services of new batches, with those that the batches bring.
pub(super) fn load_with_new(
    connection: &mut Connection,
    batches: &[PositionedBatch],
) -> Result<ServiceLengths, StoreError> {
    let mut lengths = load(connection, batches.iter().map(|batch| &batch.service_id))?;
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
    insert(connection, &new)?;
    Ok(lengths)
}

/// Removes the lengths of locked services that have used up theirs and of which no batch has rows any more:
/// otherwise a client could use them up for good. While batches have rows, the lengths are needed to
/// find these.
pub(super) fn remove_unused(
    connection: &mut Connection,
    lengths: &ServiceLengths,
) -> Result<(), StoreError> {
    let used_up: BTreeSet<&ServiceId> =
        lengths.iter().filter(|(_, lengths)| lengths.are_used_up()).map(|(id, _)| id).collect();
    if used_up.is_empty() {
        return Ok(());
    }
    let statement = Statement::new(
        connection.dialect(),
        "-- remove_address_lengths
         delete from address_lengths
         where service_id in (
             select x.service_id from {x}
             where not exists (
                 select 1 from declared_addresses d where d.service_id = x.service_id))",
    )
    .rows(service_rows(used_up));
    connection.execute(&statement).map(drop)
}

fn insert(
    connection: &mut Connection,
    new: &BTreeSet<(&ServiceId, usize, i64)>,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_address_lengths
         insert into address_lengths (service_id, length, since)
         select service_id, length, since from {x}",
    )
    .rows(
        Rows::default()
            .text("service_id", new.iter().map(|row| row.0.as_str()))
            .int("length", new.iter().map(|row| i32::try_from(row.1).unwrap_or(i32::MAX)))
            .long("since", new.iter().map(|row| row.2)),
    );
    connection.execute(&statement).map(drop)
}

#[derive(QueryableByName)]
struct LengthRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = Integer)]
    length: i32,
    #[diesel(sql_type = BigInt)]
    since: i64,
}
