//! Settles nonces: records what the chain has used them for, according to the chain or to an operator's decision.

use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_withdrawals::{
    NewSignedTransaction, NonceUse, SignedTransaction, UnsettledNonce, WithdrawalId,
};

use super::{
    nonce_actions::try_heads_again,
    rows::{hash, to_stored, whole},
    transactions::{count_transactions, insert_all_stored, remove_transactions},
};
use crate::{
    batch::lock_services,
    sql::{
        Connection, Rows, Statement, Store, StoreError, groups::LOCK_LIMIT, result_row,
        rows::storable,
    },
};

impl Store {
    /// The nonces for which it cannot be decided what the chain used them for, with the reasons.
    pub fn undecided_nonces(&self) -> Result<Vec<(ServiceId, UnsettledNonce)>, StoreError> {
        // Every service id is greater than the empty text.
        let statement = Statement::new(
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
        let rows: Vec<UndecidedRow> = self.pools.read()?.load(&statement)?;
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

    /// Records an operator's decision that an undecided nonce was used for this withdrawal. `false`: it is not
    /// undecided, or the withdrawal cannot have been paid with it.
    pub fn decide_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        paid: &WithdrawalId,
    ) -> Result<bool, StoreError> {
        self.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
            lock_services(connection, [service_id])?;
            let is_decided = decide_paid(connection, service_id, nonce, paid)?;
            if is_decided {
                try_heads_again(self, connection, service_id, None)?;
            }
            Ok(is_decided)
        })
    }
}

/// Records the decision, if the nonce can have been used for the withdrawal.
pub(super) fn decide_paid(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: u64,
    paid: &WithdrawalId,
) -> Result<bool, StoreError> {
    let number = to_stored("nonce", nonce)?;
    let Some(stored) = find_nonce(connection, service_id, number)? else {
        return Ok(false);
    };
    if !stored.undecided && !stored.is_without_event() {
        return Ok(false);
    }
    let Some(owner) = payable_owner(connection, service_id, paid, number)? else {
        return Ok(false);
    };
    let is_moved = withdrawal_of(Some(owner)) != withdrawal_of(stored.owner());
    if stored.is_without_event() {
        return if is_moved { Ok(false) } else { end_as_paid(connection, owner.0) };
    }
    let note = Some("an operator decided that it was used for this");
    let settled = SettledNonce { owner: Some(owner), note, ..SettledNonce::default() };
    if is_moved {
        remove_transactions(connection, service_id, number)?;
    }
    update_settled(connection, service_id, number, &settled)?;
    Ok(true)
}

result_row! {
    struct UndecidedRow {
        account: String,
        nonce: i64,
        note: Option<String>,
        hash: Option<Vec<u8>>,
    }
}

/// Stores a transaction that was found on the chain, after those that are already stored for its nonce.
pub(super) fn adopt(
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
    insert_all_stored(connection, service_id, &[(adopted, position)])
}

/// Records an operator's decision that a withdrawal whose transaction succeeded without the event of the pool was made.
/// `false`: its batch has not ended, or the decision was made before.
fn end_as_paid(connection: &mut Connection, withdrawal_seq: i64) -> Result<bool, StoreError> {
    let statement = Statement::new(
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

pub(super) fn withdrawal_of(owner: Option<Owner>) -> Option<i64> {
    owner.map(|(withdrawal_seq, _)| withdrawal_seq)
}

/// The data to write about a nonce that the chain has used.
#[derive(Default)]
pub(super) struct SettledNonce<'a> {
    owner: Option<Owner>,
    hash: Option<&'a [u8; 32]>,
    note: Option<&'a str>,
    outcome: Option<&'a str>,
    undecided: bool,
}

impl<'a> SettledNonce<'a> {
    pub(super) fn new(nonce_use: &'a NonceUse, owner: Option<Owner>) -> Self {
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

/// Stores a missing nonce as used for no open withdrawal.
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

pub(super) fn insert_settled(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
    settled: &SettledNonce<'_>,
    used_at: Timestamp,
) -> Result<(), StoreError> {
    let note = settled.note.map(storable);
    connection.execute_rows(
        "-- insert_settled_nonce
         insert into account_nonces
             (service_id, nonce, withdrawal_seq, generation, foreign_hash, note, outcome, undecided,
              assigned_at)
         select service_id, nonce, withdrawal_seq, generation, foreign_hash, note, outcome, undecided,
              assigned_at
         from {x}",
        settled
            .rows(service_id, nonce, note.as_deref())
            .long("assigned_at", [used_at.as_micros()]),
    )
}

pub(super) fn update_settled(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
    settled: &SettledNonce<'_>,
) -> Result<(), StoreError> {
    let note = settled.note.map(storable);
    connection.execute_rows(
        "-- settle_nonce
         update account_nonces as n
         set withdrawal_seq = x.withdrawal_seq, generation = x.generation,
             foreign_hash = x.foreign_hash, note = x.note, outcome = x.outcome,
             undecided = x.undecided
         from {x} where n.service_id = x.service_id and n.nonce = x.nonce",
        settled.rows(service_id, nonce, note.as_deref()),
    )
}

/// The withdrawal, if this nonce may be the one that pays it. Either it is open and has no other nonce with which it
/// was or may be paid, or the nonce is already its own.
pub(super) fn payable_owner(
    connection: &mut Connection,
    service_id: &ServiceId,
    id: &WithdrawalId,
    nonce: i64,
) -> Result<Option<Owner>, StoreError> {
    let statement = Statement::new(
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
    Ok(connection.load_tuples(&statement)?.into_iter().next())
}

pub(super) fn find_nonce(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
) -> Result<Option<StoredNonceRow>, StoreError> {
    let lock = connection.dialect().locking("for update of n");
    let statement = Statement::new(format!(
        "-- find_nonce
         select n.withdrawal_seq, n.generation, n.outcome, n.undecided, n.pool_withdrawal_id,
             coalesce((select w.list_state = 'OPEN' from withdrawals w
                       where w.seq = n.withdrawal_seq), false) as is_of_open
         from account_nonces n where n.service_id = ? and n.nonce = ? {lock}"
    ))
    .text(service_id.as_str())
    .long(nonce);
    let rows: Vec<StoredNonceRow> = connection.load(&statement)?;
    Ok(rows.into_iter().next())
}

result_row! {
    pub(super) struct StoredNonceRow {
        withdrawal_seq: Option<i64>,
        generation: Option<i32>,
        pub(super) outcome: Option<String>,
        pub(super) undecided: bool,
        pool_withdrawal_id: Option<String>,
        /// Whether it belongs to a withdrawal that has not ended.
        pub(super) is_of_open: bool,
    }
}

impl StoredNonceRow {
    fn is_without_event(&self) -> bool {
        self.pool_withdrawal_id.as_deref() == Some("")
    }

    pub(super) fn owner(&self) -> Option<Owner> {
        self.withdrawal_seq.zip(self.generation)
    }
}
