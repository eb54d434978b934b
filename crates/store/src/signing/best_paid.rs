use grid_batch_core::ServiceId;
use grid_batch_withdrawals::NewSignedTransaction;

use super::{
    error::to_stored,
    signed::{TRANSACTION_COLUMNS, TransactionRow},
};
use crate::{Store, StoreError};

/// The current batch of the withdrawal of `account_nonces n`, if the nonce has a withdrawal.
pub(super) const WITH_CURRENT_BATCH: &str = "left join withdrawals w on w.seq = n.withdrawal_seq left join batches b on b.seq = w.batch_seq";

/// Whether a payment with this nonce was, or may still be, made.
pub(super) const MAY_PAY: &str = "(coalesce(n.spent, '') = 'WITHDRAWN' or
    (n.spent is null and b.seq is not null and b.dlt_status is distinct from 'INVALID'))";

impl Store {
    /// The transaction to send for each nonce of an account from this one on: its filler, or else
    /// its payment with the highest fee.
    ///
    /// A payment that was reported as failed is left out. If the chain has dropped the block that
    /// made it fail, sending it would pay it after all.
    pub(super) fn transactions_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> Result<Vec<NewSignedTransaction>, StoreError> {
        let statement = self
            .statement(format!(
                "-- transactions_from
                 select {TRANSACTION_COLUMNS}
                 from account_nonces n
                 join signed_transactions k on k.service_id = n.service_id and k.nonce = n.nonce
                 {WITH_CURRENT_BATCH}
                 where n.service_id = ? and n.nonce >= ?
                     and k.position = (
                         select o.position from signed_transactions o
                         where o.service_id = n.service_id and o.nonce = n.nonce
                         order by o.cancels desc, o.max_fee desc, o.position desc limit 1)
                     and (k.cancels or {MAY_PAY})
                 order by n.service_id, n.nonce"
            ))
            .text(service_id.as_str())
            .long(to_stored("nonce", nonce)?);
        let rows: Vec<TransactionRow> = self.pools.read()?.load(&statement)?;
        rows.into_iter().map(|row| Ok(row.into_transaction()?.signed)).collect()
    }
}
