//! What is stored of the transactions that batches depend on.

use std::collections::HashMap;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Bool, Nullable, Text},
};
use grid_batch_core::{DltStatus, ItemId, ServiceId};

use super::{conflicts::number_of, dependencies::Dependent};
use crate::sql::{
    Connection, Rows, Statement, StoreError,
    rows::{batch_id, same_transaction, service_id},
};

/// The batches that have each transaction which some batches depend on.
pub(super) type Holders = HashMap<ItemId, Vec<Holder>>;

/// A batch with a transaction that others depend on.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) seq: i64,
    pub(super) batch_id: ItemId,
    pub(super) service_id: ServiceId,
    pub(super) state: HolderState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HolderState {
    Committed,
    Invalid,
    /// It ended as invalid, and what it stops waits for an operator.
    Halted,
    /// It ended as invalid, and what it stops ends up to this position.
    EndsFollowing(i64),
    /// With its position, if it has one.
    Open(Option<i64>),
}

impl HolderState {
    /// It ended as invalid, and no operator's decision is awaited.
    pub(super) const fn is_invalid(self) -> bool {
        matches!(self, Self::Invalid | Self::EndsFollowing(_))
    }
}

pub(super) fn load(
    connection: &mut Connection,
    batches: &[Dependent<'_>],
) -> Result<Holders, StoreError> {
    let ids: Vec<ItemId> = batches.iter().flat_map(|batch| batch.dependencies).copied().collect();
    if ids.is_empty() {
        return Ok(Holders::default());
    }
    let same = same_transaction("x");
    let statement = Statement::new(
        connection.dialect(),
        format!(
            "-- find_dependencies
             select x.number, b.seq, b.batch_id, b.service_id, b.dlt_status,
                 coalesce(
                     (select w.position from waiting_batches w where w.batch_seq = b.seq),
                     (select s.position from lanes s
                      where s.service_id = b.service_id and s.batch_seq = b.seq)) as position,
                 (select count(*) from halts h where h.batch_seq = b.seq) > 0 as halted,
                 (select h.ends_until from halts h where h.batch_seq = b.seq) as ends_until
             from {{x}} join transactions t on {same} join batches b on b.seq = t.batch_seq"
        ),
    )
    .rows(
        Rows::default()
            .long("number", (0..ids.len()).map(number_of))
            .bytes("transaction_id", ids.iter().map(|id| id.as_bytes())),
    );
    let rows: Vec<HolderRow> = connection.load(&statement)?;
    let mut holders = Holders::default();
    for row in rows {
        let id = usize::try_from(row.number).ok().and_then(|number| ids.get(number));
        let id = id.ok_or_else(|| StoreError::corrupt("a transaction that was not asked for"))?;
        holders.entry(*id).or_default().push(row.read()?);
    }
    Ok(holders)
}

/// What is known about a dependency of a batch from before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// The ledger was found to have it, or an operator accepts it as it is.
    Found,
    /// This batch has it and ended as invalid; retention may have removed it since.
    Invalid(i64),
}

/// What is known about the dependencies of these batches, by the number of the batch and the transaction.
pub(super) fn load_known(
    connection: &mut Connection,
    batches: &[Dependent<'_>],
) -> Result<HashMap<(i64, ItemId), Known>, StoreError> {
    let with_any = || batches.iter().filter(|batch| !batch.dependencies.is_empty());
    if with_any().next().is_none() {
        return Ok(HashMap::new());
    }
    let statement = Statement::new(
        connection.dialect(),
        "-- find_known_transactions
         select m.batch_seq, m.transaction_id, m.found_at is not null as found, m.invalid_seq
         from {x} join missing_transactions m on m.batch_seq = x.batch_seq
         where m.found_at is not null or m.invalid_seq is not null",
    )
    .rows(Rows::default().long("batch_seq", with_any().map(|batch| batch.seq)));
    let rows: Vec<KnownRow> = connection.load(&statement)?;
    rows.iter()
        .map(|row| Ok(((row.batch_seq, batch_id(&row.transaction_id)?), row.read()?)))
        .collect()
}

#[derive(QueryableByName)]
struct HolderRow {
    #[diesel(sql_type = BigInt)]
    number: i64,
    #[diesel(sql_type = BigInt)]
    seq: i64,
    #[diesel(sql_type = Binary)]
    batch_id: Vec<u8>,
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = Nullable<Text>)]
    dlt_status: Option<String>,
    #[diesel(sql_type = Nullable<BigInt>)]
    position: Option<i64>,
    #[diesel(sql_type = Bool)]
    halted: bool,
    #[diesel(sql_type = Nullable<BigInt>)]
    ends_until: Option<i64>,
}

impl HolderRow {
    fn read(self) -> Result<Holder, StoreError> {
        let status: Option<DltStatus> =
            self.dlt_status.as_deref().map(str::parse).transpose().map_err(StoreError::corrupt)?;
        Ok(Holder {
            seq: self.seq,
            batch_id: batch_id(&self.batch_id)?,
            service_id: service_id(&self.service_id)?,
            state: match (status, self.ends_until) {
                (None, _) => HolderState::Open(self.position),
                (Some(DltStatus::Committed), _) => HolderState::Committed,
                (Some(_), Some(until)) => HolderState::EndsFollowing(until),
                (Some(_), None) if self.halted => HolderState::Halted,
                (Some(_), None) => HolderState::Invalid,
            },
        })
    }
}

#[derive(QueryableByName)]
struct KnownRow {
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(sql_type = Binary)]
    transaction_id: Vec<u8>,
    #[diesel(sql_type = Bool)]
    found: bool,
    #[diesel(sql_type = Nullable<BigInt>)]
    invalid_seq: Option<i64>,
}

impl KnownRow {
    fn read(&self) -> Result<Known, StoreError> {
        match (self.found, self.invalid_seq) {
            (true, _) => Ok(Known::Found),
            (false, Some(seq)) => Ok(Known::Invalid(seq)),
            (false, None) => Err(StoreError::corrupt("a missing transaction nothing is known of")),
        }
    }
}
