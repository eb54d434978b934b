use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Bool, Integer},
};
use grid_batch_core::{AttemptId, BatchState, HeaderId, ServiceId};
use grid_batch_withdrawals::{BatchAttempt, FollowingPayment, FollowingPayments};

use super::{
    nonce_row::{NONCE_COLUMNS, WITH_NONCE},
    nonces::highest_nonce,
    payment::{PaymentRow, StoredPayment},
    rows::WITHDRAWAL_COLUMNS,
    transactions::{AccountNonce, signed_transactions},
    unsettled::stored_nonces,
};
use crate::sql::{
    Connection, Statement, Store, StoreError,
    rows::{batch_id as read_batch_id, in_states, limit},
};

/// The withdrawals behind that of a batch, if the batch may be at the ledger.
pub(crate) fn following_payments(
    store: &Store,
    service_id: &ServiceId,
    batch_id: &HeaderId,
    count: usize,
) -> Result<Option<FollowingPayments>, StoreError> {
    store.pools.read()?.snapshot(|connection| {
        let Some(head) = find_head(connection, service_id, batch_id, "")? else { return Ok(None) };
        let payments = load_following(connection, service_id, head.created_at, count)?;
        Ok(Some(FollowingPayments {
            head: BatchAttempt {
                service_id: service_id.clone(),
                batch_id: *batch_id,
                attempt_id: head.attempt_id()?,
            },
            is_under_way: head.is_under_way,
            next_nonce: highest_nonce(connection, service_id)?.map_or(0, |highest| highest + 1),
            has_unsettled: !stored_nonces(connection, service_id)?.is_empty(),
            payments: payments.into_iter().map(|stored| stored.split().1).collect(),
        }))
    })
}

/// A following withdrawal and the `seq` of its row.
pub(super) struct StoredFollowing {
    batch_id: HeaderId,
    is_held: bool,
    is_restored: bool,
    stored: StoredPayment,
}

impl StoredFollowing {
    /// The row's part, and what callers see.
    pub(super) fn split(self) -> (i64, FollowingPayment) {
        let Self { batch_id, is_held, is_restored, stored } = self;
        let StoredPayment { withdrawal_seq, payment } = stored;
        (withdrawal_seq, FollowingPayment { batch_id, is_held, is_restored, payment })
    }
}

/// The lane of a batch that may be at the ledger.
#[derive(QueryableByName)]
pub(super) struct HeadRow {
    #[diesel(sql_type = BigInt)]
    epoch: i64,
    #[diesel(sql_type = Integer)]
    attempts: i32,
    #[diesel(sql_type = BigInt)]
    pub(super) created_at: i64,
    /// Whether the ledger has accepted the batch, and the batch is not held.
    #[diesel(sql_type = Bool)]
    pub(super) is_under_way: bool,
}

impl HeadRow {
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
    batch_id: &HeaderId,
    lock: &str,
) -> Result<Option<HeadRow>, StoreError> {
    let accepted = in_states("s", |state| matches!(state, BatchState::Pending | BatchState::Valid));
    let sent = in_states("s", BatchState::awaits_poller);
    let statement = Statement::new(
        connection.dialect(),
        format!(
            "-- head_at_ledger
             select s.epoch, s.attempts, s.created_at,
                 ({accepted} and s.held_at is null) as is_under_way
             from lanes s
             where s.service_id = ? and s.batch_id = ? and {sent} {lock}"
        ),
    )
    .text(service_id.as_str())
    .bytes(batch_id.as_bytes());
    let rows: Vec<HeadRow> = connection.load(&statement)?;
    Ok(rows.into_iter().next())
}

/// The open withdrawals behind a batch that was stored then. Those of a paused service count as held.
pub(super) fn load_following(
    connection: &mut Connection,
    service_id: &ServiceId,
    created_at: i64,
    count: usize,
) -> Result<Vec<StoredFollowing>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        format!(
            "-- following_payments
             select b.batch_id, (
                     select h.held_at from waiting_holds h where h.batch_seq = b.seq
                 ) is not null or (
                     select c.paused_at from service_id_claims c where c.service_id = b.service_id
                 ) is not null or (
                     select d.paused_at from database_state d where d.id = 1
                 ) is not null as is_held,
                 coalesce(b.seq <= (select d.restored_seq from database_state d where d.id = 1), false)
                     as is_restored,
                 {WITHDRAWAL_COLUMNS}, {NONCE_COLUMNS}
             from batches b join withdrawals w on w.batch_seq = b.seq {WITH_NONCE}
             where b.service_id = ? and b.created_at > ? and b.ended_at is null
             order by b.service_id, b.created_at limit ?"
        ),
    )
    .text(service_id.as_str())
    .long(created_at)
    .long(limit(count));
    let rows: Vec<FollowingRow> = connection.load(&statement)?;
    let keys: Vec<AccountNonce> = rows.iter().filter_map(|row| row.payment.nonce_key()).collect();
    let mut transactions = match keys.is_empty() {
        true => Default::default(),
        false => signed_transactions(connection, &keys)?,
    };
    rows.into_iter()
        .map(|row| {
            Ok(StoredFollowing {
                batch_id: read_batch_id(&row.batch_id)?,
                is_held: row.is_held,
                is_restored: row.is_restored,
                stored: row.payment.into_stored(&mut transactions)?,
            })
        })
        .collect()
}

#[derive(QueryableByName)]
struct FollowingRow {
    #[diesel(sql_type = Binary)]
    batch_id: Vec<u8>,
    #[diesel(sql_type = Bool)]
    is_held: bool,
    #[diesel(sql_type = Bool)]
    is_restored: bool,
    #[diesel(embed)]
    payment: PaymentRow,
}
