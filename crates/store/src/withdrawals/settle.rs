use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Integer, Nullable, Text},
};
use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_withdrawals::{NewSignedTransaction, NonceUse, SignedTransaction, WithdrawalId};

use super::{nonce_actions::try_heads_again, to_stored, transactions::insert_stored};
use crate::{
    batch::lock_services,
    sql::{Connection, Rows, Statement, Store, StoreError, groups::LOCK_LIMIT, rows::storable},
};

/// Stores what the chain used a nonce for. `false`: nothing was stored, because the nonce has an outcome
/// already, or the withdrawal cannot have been paid with it.
pub(crate) fn settle_nonce(
    store: &Store,
    service_id: &ServiceId,
    nonce: u64,
    used_at: Timestamp,
    nonce_use: &NonceUse,
) -> Result<bool, StoreError> {
    let number = to_stored("nonce", nonce)?;
    let now = store.now();
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        lock_services(connection, [service_id])?;
        let stored = find_nonce(connection, service_id, number)?;
        if stored.as_ref().is_some_and(|stored| stored.outcome.is_some()) {
            return Ok(false);
        }
        // It was assigned after its use was looked for. What becomes of the withdrawal is found out with it.
        let is_assigned = stored.as_ref().is_some_and(|it| it.is_of_open && !it.undecided);
        if is_assigned && !matches!(nonce_use, NonceUse::Withdrawal { .. }) {
            return Ok(false);
        }
        let former = stored.as_ref().and_then(StoredNonceRow::owner);
        let owner = match nonce_use {
            NonceUse::Withdrawal { id, .. } => {
                let Some(owner) = payable_owner(connection, service_id, id, number)? else {
                    return Ok(false);
                };
                Some(owner)
            }
            // A nonce stays with its withdrawal, unless it is moved to another one.
            NonceUse::Elsewhere { .. } | NonceUse::Undecided { .. } => former,
        };
        let settled = SettledNonce::new(nonce_use, owner);
        match stored {
            None => insert_settled(connection, service_id, number, &settled, used_at)?,
            Some(_) => update_settled(connection, service_id, number, &settled)?,
        }
        if withdrawal_of(owner) != withdrawal_of(former) {
            remove_transactions(connection, service_id, number)?;
        }
        if let NonceUse::Withdrawal { transaction, .. } = nonce_use {
            adopt(connection, service_id, number, transaction.clone(), now)?;
        }
        Ok(true)
    })
}

/// Stores a transaction that was found on the chain after those that are stored for its nonce.
fn adopt(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
    signed: NewSignedTransaction,
    now: Timestamp,
) -> Result<(), StoreError> {
    let position = count_transactions(connection, service_id, nonce)?;
    let adopted = SignedTransaction {
        signed,
        signed_at: now,
        sent_at: None,
        last_error: None,
        adopted: true,
    };
    insert_stored(connection, service_id, &adopted, position)
}

/// Records an operator's decision about an undecided nonce: it was used for this withdrawal. `false`: it is
/// not undecided, or the withdrawal cannot have been paid with it.
pub(crate) fn decide_nonce(
    store: &Store,
    service_id: &ServiceId,
    nonce: u64,
    paid: &WithdrawalId,
) -> Result<bool, StoreError> {
    let number = to_stored("nonce", nonce)?;
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        lock_services(connection, [service_id])?;
        let Some(stored) = find_nonce(connection, service_id, number)? else { return Ok(false) };
        if !stored.undecided && !stored.is_without_event() {
            return Ok(false);
        }
        let Some(owner) = payable_owner(connection, service_id, paid, number)? else {
            return Ok(false);
        };
        let is_moved = withdrawal_of(Some(owner)) != withdrawal_of(stored.owner());
        if stored.is_without_event() {
            return if is_moved { Ok(false) } else { end_as_paid(connection, owner) };
        }
        let note = Some("an operator decided that it was used for this withdrawal");
        let settled = SettledNonce { owner: Some(owner), note, ..SettledNonce::default() };
        if is_moved {
            remove_transactions(connection, service_id, number)?;
        }
        update_settled(connection, service_id, number, &settled)?;
        try_heads_again(store, connection, service_id, None)?;
        Ok(true)
    })
}

/// Records an operator's decision that the withdrawal was made whose transaction succeeded without the event of the
/// pool. `false`: its batch has not ended, or the decision was made before.
fn end_as_paid(
    connection: &mut Connection,
    (withdrawal_seq, _): Owner,
) -> Result<bool, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- end_as_paid
         update withdrawals set list_state = 'COMMITTED'
         where seq = ? and list_state = 'OPEN'
             and (select b.dlt_status from batches b where b.seq = withdrawals.batch_seq) is not null",
    )
    .long(withdrawal_seq);
    Ok(connection.execute(&statement)? > 0)
}

/// The `seq` and the generation of a withdrawal that has a nonce.
type Owner = (i64, i32);

fn withdrawal_of(owner: Option<Owner>) -> Option<i64> {
    owner.map(|(withdrawal_seq, _)| withdrawal_seq)
}

/// What is written about a nonce that the chain has used.
#[derive(Default)]
struct SettledNonce<'a> {
    owner: Option<Owner>,
    hash: Option<&'a [u8; 32]>,
    note: Option<&'a str>,
    outcome: Option<&'a str>,
    undecided: bool,
}

impl<'a> SettledNonce<'a> {
    fn new(nonce_use: &'a NonceUse, owner: Option<Owner>) -> Self {
        let nonce = Self { owner, ..Self::default() };
        match nonce_use {
            NonceUse::Withdrawal { .. } => nonce,
            NonceUse::Elsewhere { hash, note } => {
                let outcome = Some("USED_ELSEWHERE");
                Self { hash: hash.as_ref(), note: Some(note), outcome, ..nonce }
            }
            NonceUse::Undecided { hash, note } => {
                Self { hash: hash.as_ref(), note: Some(note), undecided: true, ..nonce }
            }
        }
    }

    fn rows(&'a self, service_id: &'a ServiceId, nonce: i64, note: Option<&'a str>) -> Rows<'a> {
        Rows::default()
            .text("service_id", [service_id.as_str()])
            .long("nonce", [nonce])
            .optional_long("withdrawal_seq", [self.owner.map(|(seq, _)| seq)])
            .optional_long("generation", [self.owner.map(|(_, generation)| generation.into())])
            .optional_bytes("foreign_hash", [self.hash.map(|hash| &hash[..])])
            .optional_text("note", [note])
            .optional_text("outcome", [self.outcome])
            .bool("undecided", [self.undecided])
    }
}

/// Stores a nonce that was not stored, as used for no open withdrawal.
pub(super) fn insert_elsewhere(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: u64,
    nonce_use: &NonceUse,
    used_at: Timestamp,
) -> Result<(), StoreError> {
    let number = to_stored("nonce", nonce)?;
    let settled = SettledNonce::new(nonce_use, None);
    insert_settled(connection, service_id, number, &settled, used_at)
}

fn insert_settled(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
    settled: &SettledNonce<'_>,
    used_at: Timestamp,
) -> Result<(), StoreError> {
    let note = settled.note.map(storable);
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_settled_nonce
         insert into account_nonces
             (service_id, nonce, withdrawal_seq, generation, foreign_hash, note, outcome, undecided,
              assigned_at)
         select service_id, nonce, withdrawal_seq, generation, foreign_hash, note, outcome, undecided,
              assigned_at
         from {x}",
    )
    .rows(
        settled
            .rows(service_id, nonce, note.as_deref())
            .long("assigned_at", [used_at.as_micros()]),
    );
    connection.execute(&statement).map(drop)
}

fn update_settled(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
    settled: &SettledNonce<'_>,
) -> Result<(), StoreError> {
    let note = settled.note.map(storable);
    let statement = Statement::new(
        connection.dialect(),
        "-- settle_nonce
         update account_nonces as n
         set withdrawal_seq = x.withdrawal_seq, generation = x.generation,
             foreign_hash = x.foreign_hash, note = x.note, outcome = x.outcome,
             undecided = x.undecided
         from {x} where n.service_id = x.service_id and n.nonce = x.nonce",
    )
    .rows(settled.rows(service_id, nonce, note.as_deref()));
    connection.execute(&statement).map(drop)
}

/// The withdrawal, if this nonce may be the one that pays it: it is open and has no other nonce with
/// which it was or may be paid, or the nonce is its own already.
fn payable_owner(
    connection: &mut Connection,
    service_id: &ServiceId,
    id: &WithdrawalId,
    nonce: i64,
) -> Result<Option<Owner>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- payable_owner
         select w.seq as withdrawal_seq, w.generation
         from withdrawals w
         join batches b on b.seq = w.batch_seq
         left join account_nonces n on n.withdrawal_seq = w.seq
             and (n.outcome is null or n.outcome = 'WITHDRAWN')
         where w.withdrawal_id = ? and w.service_id = ?
             and ((n.nonce is null and b.dlt_status is null) or n.nonce = ?)",
    )
    .bytes(id.as_bytes())
    .text(service_id.as_str())
    .long(nonce);
    let rows: Vec<OwnerRow> = connection.load(&statement)?;
    Ok(rows.first().map(|row| (row.withdrawal_seq, row.generation)))
}

fn find_nonce(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
) -> Result<Option<StoredNonceRow>, StoreError> {
    let dialect = connection.dialect();
    let lock = dialect.locking("for update of n");
    let statement = Statement::new(
        dialect,
        format!(
            "-- find_nonce
             select n.withdrawal_seq, n.generation, n.outcome, n.undecided, n.pool_withdrawal_id,
                 coalesce((select w.list_state = 'OPEN' from withdrawals w
                           where w.seq = n.withdrawal_seq), false) as is_of_open
             from account_nonces n where n.service_id = ? and n.nonce = ? {lock}"
        ),
    )
    .text(service_id.as_str())
    .long(nonce);
    let rows: Vec<StoredNonceRow> = connection.load(&statement)?;
    Ok(rows.into_iter().next())
}

/// Removes what was signed for the withdrawal that had the nonce before: none of it can be mined any
/// more.
fn remove_transactions(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- remove_transactions
         delete from signed_transactions where service_id = ? and nonce = ?",
    )
    .text(service_id.as_str())
    .long(nonce);
    connection.execute(&statement).map(drop)
}

fn count_transactions(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
) -> Result<usize, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- count_transactions
         select count(*) as transactions from signed_transactions k
         where k.service_id = ? and k.nonce = ?",
    )
    .text(service_id.as_str())
    .long(nonce);
    let rows: Vec<CountRow> = connection.load(&statement)?;
    let count = rows.first().map_or(0, |row| row.transactions);
    usize::try_from(count).map_err(StoreError::corrupt)
}

#[derive(QueryableByName)]
struct StoredNonceRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    withdrawal_seq: Option<i64>,
    #[diesel(sql_type = Nullable<Integer>)]
    generation: Option<i32>,
    #[diesel(sql_type = Nullable<Text>)]
    outcome: Option<String>,
    #[diesel(sql_type = Bool)]
    undecided: bool,
    #[diesel(sql_type = Nullable<Text>)]
    pool_withdrawal_id: Option<String>,
    /// Whether it belongs to a withdrawal that has not ended.
    #[diesel(sql_type = Bool)]
    is_of_open: bool,
}

impl StoredNonceRow {
    fn is_without_event(&self) -> bool {
        self.pool_withdrawal_id.as_deref() == Some("")
    }

    fn owner(&self) -> Option<Owner> {
        self.withdrawal_seq.zip(self.generation)
    }
}

#[derive(QueryableByName)]
struct OwnerRow {
    #[diesel(sql_type = BigInt)]
    withdrawal_seq: i64,
    #[diesel(sql_type = Integer)]
    generation: i32,
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    transactions: i64,
}
