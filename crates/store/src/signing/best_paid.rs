use grid_batch_core::ServiceId;
use grid_batch_withdrawals::NewSignedTransaction;

use super::{
    error::stored,
    signed::{SIGNED_COLUMNS, SignedRow},
};
use crate::{Store, StoreError};

/// The batch that tries the withdrawal of `account_nonces n` now, where the nonce has a withdrawal.
pub(super) const WITH_PRESENT_BATCH: &str = "left join withdrawals w on w.seq = n.withdrawal_seq left join batches b on b.seq = w.batch_seq";

/// Whether a payment with this nonce has been, or may still be, made.
pub(super) const MAY_PAY: &str = "(coalesce(n.spent, '') = 'WITHDRAWN' or
    (n.spent is null and b.seq is not null and b.dlt_status is distinct from 'INVALID'))";

impl Store {
    /// What to send with each nonce of an account from this one on: what only uses it up, or else
    /// its best paid payment.
    ///
    /// A payment that was told of as failed is left out: should the chain have forgotten why, it
    /// would be paid after all, and perhaps another one as well.
    pub(super) fn best_paid_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> Result<Vec<NewSignedTransaction>, StoreError> {
        let statement = self
            .statement(format!(
                "-- best_paid_from
                 select {SIGNED_COLUMNS}
                 from account_nonces n
                 join signed_transactions k on k.service_id = n.service_id and k.nonce = n.nonce
                 {WITH_PRESENT_BATCH}
                 where n.service_id = ? and n.nonce >= ?
                     and k.position = (
                         select o.position from signed_transactions o
                         where o.service_id = n.service_id and o.nonce = n.nonce
                         order by o.cancels desc, o.max_fee desc, o.position desc limit 1)
                     and (k.cancels or {MAY_PAY})
                 order by n.service_id, n.nonce"
            ))
            .text(service_id.as_str())
            .long(stored("nonce", nonce)?);
        let rows: Vec<SignedRow> = self.pools.read()?.load(&statement)?;
        rows.into_iter().map(|row| Ok(row.into_transaction()?.signed)).collect()
    }
}
