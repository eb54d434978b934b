use grid_batch_core::{NewSigned, ServiceId};

use super::{
    error::stored,
    signed::{SIGNED_COLUMNS, SignedRow},
};
use crate::{Store, StoreError};

impl Store {
    /// The best paid transaction of each nonce of an account from this one on.
    ///
    /// A payment of which it was written down that it came to nothing is left out: should the chain
    /// have forgotten that, it would be paid after all, and perhaps another one as well.
    pub(super) fn best_paid_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> Result<Vec<NewSigned>, StoreError> {
        let statement = self
            .statement(format!(
                "-- best_paid_from
                 select {SIGNED_COLUMNS}
                 from account_nonces n
                 join signed_transactions k on k.service_id = n.service_id and k.nonce = n.nonce
                 where n.service_id = ? and n.nonce >= ?
                     and k.position = (
                         select o.position from signed_transactions o
                         where o.service_id = n.service_id and o.nonce = n.nonce
                         order by o.max_fee desc, o.position desc limit 1)
                     and (k.cancels or n.spent is null or n.spent = 'WITHDRAWN')
                 order by n.service_id, n.nonce"
            ))
            .text(service_id.as_str())
            .long(stored("nonce", nonce)?);
        let rows: Vec<SignedRow> = self.pools.read()?.load(&statement)?;
        rows.into_iter().map(|row| Ok(row.into_transaction()?.signed)).collect()
    }
}
