//! The withdrawals after one that may be at the ledger, which are signed before their turns.

use diesel::QueryableByName;
use grid_batch_core::batches::BatchState;
use grid_batch_core::ledger::AttemptId;
use grid_batch_core::{ItemId, ServiceId, Timestamp};
use grid_batch_withdrawals::{
    BatchAttempt, FollowingPayment, FollowingPayments, NewSignedTransaction, NonceOutcome, Payment,
};

use super::{
    nonces::NewNonce,
    pool_lanes::{FirstOpenRow, PoolHead, load_first_open, load_pool_heads},
    rows::{
        AccountNonce, IS_RESTORED, NONCE_COLUMNS, OutcomeRow, PaymentRow, StoredPayment,
        WITH_NONCE, WITHDRAWAL_COLUMNS,
    },
    transactions::signed_transactions,
};
use crate::sql::{
    Connection, Statement, StoreError, result_row,
    rows::{batch_id as read_batch_id, in_states, limit},
};

/// A following withdrawal and the `seq` of its row.
pub(super) struct StoredFollowing {
    batch_id: ItemId,
    created_at: i64,
    is_held: bool,
    stored: StoredPayment,
}

impl StoredFollowing {
    /// Splits it into the `seq` and the part that callers see.
    pub(super) fn split(self) -> (i64, FollowingPayment) {
        let Self { batch_id, is_held, stored, .. } = self;
        let StoredPayment { withdrawal_seq, payment } = stored;
        (withdrawal_seq, FollowingPayment { batch_id, is_held, payment })
    }
}

result_row! {
    /// The lane of a batch that may be at the ledger.
    pub(super) struct PaymentHeadRow {
        epoch: i64,
        attempts: i32,
        pub(super) created_at: i64,
        /// Whether the ledger has accepted the batch and the batch is not held.
        pub(super) is_under_way: bool,
        /// Whether other lanes of the service have batches, because the service has had a parked pool.
        has_others: bool,
    }
}

impl PaymentHeadRow {
    pub(super) fn attempt_id(&self) -> Result<AttemptId, StoreError> {
        Ok(AttemptId {
            attempt: u32::try_from(self.attempts).map_err(StoreError::corrupt)?,
            epoch: u64::try_from(self.epoch).map_err(StoreError::corrupt)?,
        })
    }
}

/// The lane of this batch, if it may be at the ledger. `lock` is empty or the clause that locks it.
pub(super) fn find_head(
    connection: &mut Connection,
    service_id: &ServiceId,
    batch_id: &ItemId,
    lock: &str,
) -> Result<Option<PaymentHeadRow>, StoreError> {
    let accepted = in_states("s", |state| matches!(state, BatchState::Pending | BatchState::Valid));
    let sent = in_states("s", BatchState::awaits_poller);
    let statement = Statement::new(format!(
        "-- head_at_ledger
         select s.epoch, s.attempts, s.created_at,
             ({accepted} and s.held_at is null) as is_under_way,
             (select count(*) from lanes o
              where o.service_id = s.service_id and o.busy) > 1 as has_others
         from lanes s
         where s.service_id = ? and s.batch_id = ? and {sent} {lock}"
    ))
    .text(service_id.as_str())
    .bytes(batch_id.as_bytes());
    let rows: Vec<PaymentHeadRow> = connection.load(&statement)?;
    Ok(rows.into_iter().next())
}

/// The open withdrawals after one that is under way, in order.
#[derive(Default)]
pub(super) struct Behind {
    pub(super) payments: Vec<StoredFollowing>,
    pub(super) due_pools: Vec<String>,
}

/// The open withdrawals after the one under way, without those of parked pools, and without those that have no nonce
/// while an earlier one waits in a lane. Withdrawals of a paused service count as held.
pub(super) fn load_following(
    connection: &mut Connection,
    service_id: &ServiceId,
    head: &PaymentHeadRow,
    count: usize,
    now: Timestamp,
) -> Result<Behind, StoreError> {
    if !head.has_others {
        let payments = load_behind(connection, service_id, None, head.created_at, count)?;
        return Ok(Behind { payments, ..Behind::default() });
    }
    let (parked, in_order): (Vec<PoolHead>, Vec<PoolHead>) =
        load_pool_heads(connection, service_id, now)?
            .into_iter()
            .partition(|pool_head| pool_head.is_parked);
    let is_parked =
        |pool: &String| parked.iter().any(|pool_head| pool_head.pool.as_ref() == Some(pool));
    let mut payments = Vec::new();
    for FirstOpenRow { pool, .. } in load_first_open(connection, service_id)? {
        if !is_parked(&pool) {
            let behind = load_behind(connection, service_id, Some(&pool), head.created_at, count)?;
            payments.extend(behind);
        }
    }
    payments.sort_unstable_by_key(|following| following.created_at);
    if in_order.iter().any(|pool_head| pool_head.created_at < head.created_at) {
        payments.retain(|following| following.stored.payment.nonce.is_some());
    }
    payments.truncate(count);
    let due = parked.into_iter().filter(|pool_head| pool_head.is_due);
    Ok(Behind { payments, due_pools: due.filter_map(|pool_head| pool_head.pool).collect() })
}

/// The open withdrawals that were stored later, of all pools or of this one.
fn load_behind(
    connection: &mut Connection,
    service_id: &ServiceId,
    pool: Option<&str>,
    created_at: i64,
    count: usize,
) -> Result<Vec<StoredFollowing>, StoreError> {
    let columns =
        format!("{FOLLOWING_COLUMNS}, {WITHDRAWAL_COLUMNS}, {NONCE_COLUMNS}, {IS_RESTORED}");
    let statement = match pool {
        None => Statement::new(format!(
            "-- following_payments
             select {columns}
             from batches b join withdrawals w on w.batch_seq = b.seq {WITH_NONCE}
             where b.service_id = ? and b.created_at > ? and b.ended_at is null
             order by b.service_id, b.created_at limit ?"
        ))
        .text(service_id.as_str()),
        Some(pool) => Statement::new(format!(
            "-- following_payments_of_pool
             select {columns}
             from withdrawals w join batches b on b.seq = w.batch_seq {WITH_NONCE}
             where w.service_id = ? and w.pool = ? and w.list_state = 'OPEN'
                 and b.created_at > ? and b.ended_at is null
             order by w.service_id, w.pool, w.batch_seq limit ?"
        ))
        .text(service_id.as_str())
        .text(pool),
    };
    load_rows(connection, &statement.long(created_at).long(limit(count)))
}

/// How many withdrawals may end in the commit that ends one before them.
const MOST_AT_ONCE: usize = 64;

/// The batches right after one that has just ended, up to the first whose payment is not final. They are paid, and
/// neither held nor older than a restore.
pub(super) fn load_paid_behind(
    connection: &mut Connection,
    service_id: &ServiceId,
    ended_seq: i64,
) -> Result<Vec<(i64, ItemId)>, StoreError> {
    let statement = Statement::new(format!(
        "-- paid_behind
         select b.seq as batch_seq, {FOLLOWING_COLUMNS}, {IS_RESTORED}, n.outcome, n.pool_withdrawal_id
         from batches b join withdrawals w on w.batch_seq = b.seq {WITH_NONCE}
         where b.service_id = ? and b.ended_at is null
             and b.created_at > (select e.created_at from batches e where e.seq = ?)
         order by b.service_id, b.created_at limit ?"
    ))
    .text(service_id.as_str())
    .long(ended_seq)
    .long(limit(MOST_AT_ONCE));
    let rows: Vec<PaidBehindRow> = connection.load(&statement)?;
    let mut paid = Vec::new();
    for PaidBehindRow { batch_seq, batch_id, is_held, is_restored, outcome } in rows {
        let is_paid = matches!(
            outcome.read()?,
            Some(NonceOutcome::Withdrawn { .. } | NonceOutcome::Executed { .. })
        );
        if !is_paid || is_held || is_restored {
            break;
        }
        paid.push((batch_seq, read_batch_id(&batch_id)?));
    }
    Ok(paid)
}

result_row! {
    struct PaidBehindRow {
        batch_seq: i64,
        batch_id: Vec<u8>,
        is_held: bool,
        is_restored: bool,
        #[diesel(embed)]
        outcome: OutcomeRow,
    }
}

pub(super) fn load_rows(
    connection: &mut Connection,
    statement: &Statement<'_>,
) -> Result<Vec<StoredFollowing>, StoreError> {
    let rows: Vec<FollowingRow> = connection.load(statement)?;
    let keys: Vec<AccountNonce> = rows.iter().filter_map(|row| row.payment.nonce_key()).collect();
    let mut transactions = signed_transactions(connection, &keys)?;
    rows.into_iter()
        .map(|row| {
            Ok(StoredFollowing {
                batch_id: read_batch_id(&row.batch_id)?,
                created_at: row.created_at,
                is_held: row.is_held,
                stored: row.payment.into_stored(&mut transactions)?,
            })
        })
        .collect()
}

/// The first columns of a [`FollowingRow`], from `batches b`.
pub(super) const FOLLOWING_COLUMNS: &str = "b.batch_id, b.created_at, (
        select h.held_at from waiting_holds h where h.batch_seq = b.seq
    ) is not null or (
        select l.held_at from lanes l where l.service_id = b.service_id and l.batch_seq = b.seq
    ) is not null or (
        select c.paused_at from service_id_claims c where c.service_id = b.service_id
    ) is not null or (
        select d.paused_at from database_state d where d.id = 1
    ) is not null as is_held";

result_row! {
    struct FollowingRow {
        batch_id: Vec<u8>,
        created_at: i64,
        is_held: bool,
        #[diesel(embed)]
        payment: PaymentRow,
    }
}

/// The nonce of each transaction, with the withdrawal to which it is assigned.
pub(super) fn nonces_with_owners(
    present: &FollowingPayments,
    seqs: &[i64],
    signed: &[NewSignedTransaction],
) -> Vec<NewNonce> {
    let unsigned: Vec<_> = present.unsigned().take(signed.len()).collect();
    let payments = present.payments.iter().zip(seqs);
    payments
        .filter(|(following, _)| unsigned.iter().any(|it| it.batch_id == following.batch_id))
        .zip(signed)
        .map(|((following, seq), signed)| NewNonce {
            nonce: signed.nonce,
            owner: Some((*seq, following.payment.generation)),
        })
        .collect()
}

/// Locks the lane of the withdrawal that is under way, if it is in the same attempt and epoch.
pub(super) fn lock_head(
    connection: &mut Connection,
    head: &BatchAttempt,
) -> Result<Option<PaymentHeadRow>, StoreError> {
    let lock = connection.dialect().locking("for update of s");
    let found = find_head(connection, &head.service_id, &head.batch_id, lock)?;
    let Some(found) = found else { return Ok(None) };
    let is_same = found.is_under_way && found.attempt_id()? == head.attempt_id;
    Ok(is_same.then_some(found))
}

/// Whether the transactions have consecutive nonces from the next one on, and the withdrawals for which they were
/// signed are still the first that may be signed.
pub(super) fn is_for_first_unsigned(
    read: &FollowingPayments,
    present: &FollowingPayments,
    signed: &[NewSignedTransaction],
) -> bool {
    let has_next_nonces = (read.next_nonce..).zip(signed).all(|(nonce, it)| it.nonce == nonce);
    let ids = |payments: &FollowingPayments| -> Vec<_> {
        payments.unsigned().take(signed.len()).map(|following| following.batch_id).collect()
    };
    let (before, now) = (ids(read), ids(present));
    has_next_nonces && !signed.is_empty() && before.len() == signed.len() && before == now
}

/// The nonce of a payment, if it is open, and the position of the next transaction.
pub(super) fn next_position(payment: Payment) -> Option<(u64, usize)> {
    let open = payment.nonce.filter(|nonce| nonce.outcome.is_none())?;
    (!payment.cancel_requested).then_some((open.nonce, open.transactions.len()))
}
