use diesel::QueryableByName;
use grid_batch_core::{HeaderId, ServiceId};
use grid_batch_withdrawals::{AssignedNonce, NonceOutcome, Payment};

use super::rows::{NONCE_COLUMNS, NonceRow, WITH_NONCE};
use crate::{
    Store, StoreError,
    connection::Connection,
    withdrawals::rows::{WITHDRAWAL_COLUMNS, WithdrawalRow},
};

/// A payment with the sequence number of its withdrawal.
pub(super) struct PaymentWithSeq {
    pub(super) withdrawal_seq: i64,
    pub(super) payment: Payment,
}

impl Store {
    /// The withdrawal that this batch pays, with its nonce.
    pub(super) fn payment(
        &self,
        service_id: &ServiceId,
        batch_id: &HeaderId,
    ) -> Result<Option<Payment>, StoreError> {
        self.pools.read()?.snapshot(|connection| {
            let found = self.find_payment(connection, service_id, batch_id)?;
            Ok(found.map(|found| found.payment))
        })
    }

    pub(super) fn find_payment(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        batch_id: &HeaderId,
    ) -> Result<Option<PaymentWithSeq>, StoreError> {
        let statement = self
            .statement(format!(
                "-- payment
                 select {WITHDRAWAL_COLUMNS}, {NONCE_COLUMNS}
                 from batches b join withdrawals w on w.batch_seq = b.seq {WITH_NONCE}
                 where b.batch_id = ? and b.service_id = ?"
            ))
            .bytes(batch_id.as_bytes())
            .text(service_id.as_str());
        let rows: Vec<PaymentRow> = connection.load(&statement)?;
        let Some(PaymentRow { withdrawal, nonce }) = rows.into_iter().next() else {
            return Ok(None);
        };
        let mut signed = self.load_transactions(connection, nonce.key().as_slice())?;
        let generation = withdrawal.generation()?;
        let cancel_requested = withdrawal.cancelled_at().is_some();
        let withdrawal_seq = withdrawal.withdrawal_seq;
        let withdrawal = withdrawal.into_withdrawal()?;
        let latest = nonce.into_nonce(&mut signed)?;
        let payment = Payment {
            withdrawal_id: withdrawal.id,
            generation,
            pool: withdrawal.pool,
            beneficiary: withdrawal.beneficiary,
            amount: withdrawal.amount,
            cancel_requested,
            nonce: latest.filter(|nonce| is_current(nonce, generation)),
        };
        Ok(Some(PaymentWithSeq { withdrawal_seq, payment }))
    }
}

/// A nonce that did not pay counts only in its own generation.
fn is_current(nonce: &AssignedNonce, generation: u32) -> bool {
    has_paid_or_may_pay(nonce) || nonce.generation == generation
}

/// Whether the withdrawal was, or may still be, paid with this nonce.
pub(super) fn has_paid_or_may_pay(nonce: &AssignedNonce) -> bool {
    matches!(nonce.outcome, None | Some(NonceOutcome::Withdrawn { .. }))
}

#[derive(QueryableByName)]
struct PaymentRow {
    #[diesel(embed)]
    withdrawal: WithdrawalRow,
    #[diesel(embed)]
    nonce: NonceRow,
}
