use diesel::{QueryableByName, sql_types::Bool};
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_withdrawals::{AssignedNonce, BatchAttempt, NonceOutcome, Payment};

use super::{
    nonce_row::{NONCE_COLUMNS, NonceRow, WITH_NONCE},
    rows::{WITHDRAWAL_COLUMNS, WithdrawalRow},
    transactions::{AccountNonce, TransactionsByNonce, signed_transactions},
};
use crate::{
    batch::{lock_lanes, lock_services},
    sql::{Connection, Statement, Store, StoreError},
};

/// Whether `batches b` was stored before the database was restored.
pub(super) const IS_RESTORED: &str = "coalesce(b.seq <= (select d.restored_seq from database_state d where d.id = 1), false) as is_restored";

/// A payment and the `seq` of its withdrawal.
pub(super) struct StoredPayment {
    pub(super) withdrawal_seq: i64,
    pub(super) payment: Payment,
}

/// The payment that a batch makes.
pub(crate) fn payment(
    store: &Store,
    service_id: &ServiceId,
    batch_id: &ItemId,
) -> Result<Option<Payment>, StoreError> {
    store.pools.read()?.snapshot(|connection| {
        let found = find_payment(connection, service_id, batch_id)?;
        Ok(found.map(|stored| stored.payment))
    })
}

/// The payment to sign for, while the batch is with the submitter of this attempt. The account is
/// locked until the end of the transaction.
pub(super) fn lock_payment(
    connection: &mut Connection,
    attempt: &BatchAttempt,
) -> Result<Option<StoredPayment>, StoreError> {
    lock_services(connection, [&attempt.service_id])?;
    let key = (attempt.service_id.clone(), attempt.batch_id);
    let lanes = lock_lanes(connection, &[key.clone()].into())?;
    if !lanes.get(&key).is_some_and(|lane| lane.is_with_submitter(attempt.attempt_id)) {
        return Ok(None);
    }
    find_payment(connection, &attempt.service_id, &attempt.batch_id)
}

pub(super) fn find_payment(
    connection: &mut Connection,
    service_id: &ServiceId,
    batch_id: &ItemId,
) -> Result<Option<StoredPayment>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        format!(
            "-- payment
             select {WITHDRAWAL_COLUMNS}, {NONCE_COLUMNS}, {IS_RESTORED}
             from batches b join withdrawals w on w.batch_seq = b.seq {WITH_NONCE}
             where b.batch_id = ? and b.service_id = ?"
        ),
    )
    .bytes(batch_id.as_bytes())
    .text(service_id.as_str());
    let rows: Vec<PaymentRow> = connection.load(&statement)?;
    let Some(row) = rows.into_iter().next() else { return Ok(None) };
    let mut transactions = match row.nonce_key() {
        Some(key) => signed_transactions(connection, &[key])?,
        None => TransactionsByNonce::new(),
    };
    row.into_stored(&mut transactions).map(Some)
}

/// A nonce that paid nothing no longer counts in the next generation.
fn counts(nonce: &AssignedNonce, generation: u32) -> bool {
    may_be_paid(nonce) || nonce.generation == generation
}

/// Whether the withdrawal is, or may still be, paid with this nonce.
pub(super) fn may_be_paid(nonce: &AssignedNonce) -> bool {
    matches!(
        nonce.outcome,
        None | Some(NonceOutcome::Withdrawn { .. } | NonceOutcome::WithoutEvent)
    )
}

/// A withdrawal with its highest nonce.
#[derive(QueryableByName)]
pub(super) struct PaymentRow {
    #[diesel(embed)]
    withdrawal: WithdrawalRow,
    #[diesel(embed)]
    nonce: NonceRow,
    #[diesel(sql_type = Bool)]
    is_restored: bool,
}

impl PaymentRow {
    pub(super) fn nonce_key(&self) -> Option<AccountNonce> {
        self.nonce.key()
    }

    pub(super) fn into_stored(
        self,
        transactions: &mut TransactionsByNonce,
    ) -> Result<StoredPayment, StoreError> {
        let Self { withdrawal, nonce, is_restored } = self;
        let generation = withdrawal.generation()?;
        let cancel_requested = withdrawal.cancelled_at().is_some();
        let withdrawal_seq = withdrawal.withdrawal_seq;
        let withdrawal = withdrawal.into_withdrawal()?;
        let latest = nonce.into_nonce(transactions)?;
        let payment = Payment {
            withdrawal_id: withdrawal.id,
            generation,
            pool: withdrawal.pool,
            beneficiary: withdrawal.beneficiary,
            amount: withdrawal.amount,
            cancel_requested,
            is_restored,
            nonce: latest.filter(|nonce| counts(nonce, generation)),
        };
        Ok(StoredPayment { withdrawal_seq, payment })
    }
}
