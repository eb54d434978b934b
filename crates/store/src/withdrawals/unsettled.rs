use diesel::{
    QueryableByName,
    prelude::*,
    sql_types::{BigInt, Binary, Bool, Nullable, Text},
};
use grid_batch_core::{DltStatus, ServiceId, Timestamp};
use grid_batch_withdrawals::{UnpaidWithdrawal, UnsettledNonce, UnsettledNonces, WithdrawalId};

use super::{
    nonces::highest_nonce,
    rows::{hash, whole},
};
use crate::sql::{Connection, Statement, Store, StoreError, rows::time, schema::withdrawals};

/// The nonces that the chain may have used for something that is not stored.
pub(crate) fn unsettled_nonces(
    store: &Store,
    service_id: &ServiceId,
) -> Result<UnsettledNonces, StoreError> {
    store.pools.read()?.snapshot(|connection| {
        let next = highest_nonce(connection, service_id)?.map(|highest| highest + 1);
        Ok(UnsettledNonces { next, stored: stored_nonces(connection, service_id)? })
    })
}

pub(super) fn stored_nonces(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Vec<UnsettledNonce>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- unsettled_nonces
         select n.nonce, n.undecided, n.note, k.hash,
             (n.withdrawal_seq is null and not n.undecided and n.note is not null) as to_fill
         from account_nonces n
         left join withdrawals w on w.seq = n.withdrawal_seq
         left join batches b on b.seq = w.batch_seq
         left join signed_transactions k on k.service_id = n.service_id and k.nonce = n.nonce
         where n.service_id = ? and coalesce(n.outcome, '') = ''
             and (n.undecided or n.withdrawal_seq is null or b.dlt_status is not null)
         order by n.nonce, k.position",
    )
    .text(service_id.as_str());
    let rows: Vec<UnsettledRow> = connection.load(&statement)?;
    let mut nonces: Vec<UnsettledNonce> = Vec::new();
    for row in rows {
        let nonce = whole(row.nonce)?;
        if nonces.last().is_none_or(|last| last.nonce != nonce) {
            let undecided = row.undecided.then(|| row.note.unwrap_or_default());
            let to_fill = row.to_fill;
            nonces.push(UnsettledNonce { nonce, undecided, to_fill, hashes: Vec::new() });
        }
        if let (Some(last), Some(bytes)) = (nonces.last_mut(), row.hash) {
            last.hashes.push(hash(bytes)?);
        }
    }
    Ok(nonces)
}

/// Whether it cannot be decided what the chain used a nonce of the account for.
pub(super) fn has_undecided_nonce(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<bool, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- has_undecided_nonce
         select n.nonce from account_nonces n
         where n.service_id = ? and coalesce(n.outcome, '') = '' and n.undecided
         order by n.nonce limit 1",
    )
    .text(service_id.as_str());
    let rows: Vec<NonceNumberRow> = connection.load(&statement)?;
    Ok(!rows.is_empty())
}

/// The undecided nonces of all accounts, for operators, with why they are undecided.
pub(crate) fn undecided_nonces(
    store: &Store,
) -> Result<Vec<(ServiceId, UnsettledNonce)>, StoreError> {
    // Every service id is greater than the empty text.
    let statement = store
        .statement(
            "-- undecided_nonces
             select n.service_id as account, n.nonce, n.note, n.foreign_hash as hash
             from account_nonces n
             where n.service_id > ? and coalesce(n.outcome, '') = '' and n.undecided
             union all
             select n.service_id as account, n.nonce, n.note, n.mined_hash as hash
             from account_nonces n join withdrawals w on w.seq = n.withdrawal_seq
             join batches b on b.seq = w.batch_seq
             where n.service_id > ? and n.pool_withdrawal_id = '' and w.list_state = 'OPEN'
                 and b.dlt_status is not null
             order by account, nonce",
        )
        .text("")
        .text("");
    let rows: Vec<UndecidedRow> = store.pools.read()?.load(&statement)?;
    let read = |row: UndecidedRow| {
        let nonce = UnsettledNonce {
            nonce: whole(row.nonce)?,
            undecided: Some(row.note.unwrap_or_default()),
            to_fill: false,
            hashes: row.hash.map(hash).transpose()?.into_iter().collect(),
        };
        Ok((row.account.parse().map_err(StoreError::corrupt)?, nonce))
    };
    rows.into_iter().map(read).collect()
}

/// A time before the first use of any nonce that is not stored.
pub(crate) fn unsettled_since(
    store: &Store,
    service_id: &ServiceId,
) -> Result<Option<Timestamp>, StoreError> {
    let statement = store
        .statement(
            "-- unsettled_since
             select coalesce(
                 (select n.assigned_at from account_nonces n where n.service_id = ?
                  order by n.nonce desc limit 1),
                 (select w.created_at from withdrawals w where w.service_id = ?
                  order by w.seq limit 1)) as since",
        )
        .text(service_id.as_str())
        .text(service_id.as_str());
    let rows: Vec<SinceRow> = store.pools.read()?.load(&statement)?;
    Ok(rows.first().and_then(|row| time(row.since)))
}

/// When the first open withdrawal of the account was scheduled.
pub(crate) fn first_open(
    store: &Store,
    service_id: &ServiceId,
) -> Result<Option<Timestamp>, StoreError> {
    let statement = store
        .statement(
            "-- first_open_withdrawal
             select w.created_at as since
             from batches b join withdrawals w on w.batch_seq = b.seq
             where b.service_id = ? and b.ended_at is null
             order by b.service_id, b.created_at limit 1",
        )
        .text(service_id.as_str());
    let rows: Vec<SinceRow> = store.pools.read()?.load(&statement)?;
    Ok(rows.first().and_then(|row| time(row.since)))
}

/// The pools of the account's withdrawals.
pub(crate) fn pools(store: &Store, service_id: &ServiceId) -> Result<Vec<String>, StoreError> {
    let mut connection = store.pools.read()?;
    pools_of(&mut connection, service_id)
}

pub(super) fn pools_of(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Vec<String>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- pools
         select distinct w.pool from withdrawals w where w.service_id = ? order by w.pool",
    )
    .text(service_id.as_str());
    let rows: Vec<PoolRow> = connection.load(&statement)?;
    Ok(rows.into_iter().map(|row| row.pool).collect())
}

/// Whether a withdrawal from this pool was made.
pub(crate) fn has_paid(store: &Store, pool: &str) -> Result<bool, StoreError> {
    let paid = withdrawals::table
        .filter(withdrawals::pool.eq(pool))
        .filter(withdrawals::list_state.eq(DltStatus::Committed.as_str()))
        .select(withdrawals::seq)
        .limit(1);
    let rows: Vec<i64> = store.pools.read()?.load_query("has_paid", paid)?;
    Ok(!rows.is_empty())
}

/// The withdrawals with these terms that are not known to be paid, in the order of their batches.
pub(crate) fn unpaid_withdrawals(
    store: &Store,
    service_id: &ServiceId,
    pool: &str,
    beneficiary: &str,
    amount: &str,
) -> Result<Vec<UnpaidWithdrawal>, StoreError> {
    let statement = store
        .statement(
            "-- unpaid_withdrawals
             select w.withdrawal_id, w.created_at as scheduled_at, n.nonce,
                 b.dlt_status is null as is_open
             from withdrawals w
             join batches b on b.seq = w.batch_seq
             left join account_nonces n on n.withdrawal_seq = w.seq and n.outcome is null
             where w.beneficiary = ? and w.service_id = ? and w.pool = ? and w.amount = ?
                 and coalesce(b.dlt_status, '') <> 'COMMITTED'
                 and not exists (select 1 from account_nonces p
                     where p.withdrawal_seq = w.seq and p.outcome = 'WITHDRAWN')
             order by b.created_at, w.seq",
        )
        .text(beneficiary)
        .text(service_id.as_str())
        .text(pool)
        .text(amount);
    let rows: Vec<UnpaidRow> = store.pools.read()?.load(&statement)?;
    rows.into_iter().map(UnpaidRow::read).collect()
}

#[derive(QueryableByName)]
struct UnsettledRow {
    #[diesel(sql_type = BigInt)]
    nonce: i64,
    #[diesel(sql_type = Bool)]
    undecided: bool,
    #[diesel(sql_type = Nullable<Text>)]
    note: Option<String>,
    #[diesel(sql_type = Nullable<Binary>)]
    hash: Option<Vec<u8>>,
    #[diesel(sql_type = Bool)]
    to_fill: bool,
}

#[derive(QueryableByName)]
struct UndecidedRow {
    #[diesel(sql_type = Text)]
    account: String,
    #[diesel(sql_type = BigInt)]
    nonce: i64,
    #[diesel(sql_type = Nullable<Text>)]
    note: Option<String>,
    #[diesel(sql_type = Nullable<Binary>)]
    hash: Option<Vec<u8>>,
}

#[derive(QueryableByName)]
struct NonceNumberRow {
    #[expect(dead_code, reason = "only whether there is a row counts")]
    #[diesel(sql_type = BigInt)]
    nonce: i64,
}

#[derive(QueryableByName)]
struct SinceRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    since: Option<i64>,
}

#[derive(QueryableByName)]
struct PoolRow {
    #[diesel(sql_type = Text)]
    pool: String,
}

#[derive(QueryableByName)]
struct UnpaidRow {
    #[diesel(sql_type = Binary)]
    withdrawal_id: Vec<u8>,
    #[diesel(sql_type = BigInt)]
    scheduled_at: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    nonce: Option<i64>,
    #[diesel(sql_type = Bool)]
    is_open: bool,
}

impl UnpaidRow {
    fn read(self) -> Result<UnpaidWithdrawal, StoreError> {
        Ok(UnpaidWithdrawal {
            id: WithdrawalId::try_from(&self.withdrawal_id[..]).map_err(StoreError::corrupt)?,
            created_at: Timestamp::from_micros(self.scheduled_at),
            is_open: self.is_open,
            nonce: self.nonce.map(whole).transpose()?,
        })
    }
}
