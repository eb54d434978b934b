use std::slice;

use diesel::{QueryableByName, sql_types::Bool};
use grid_batch_core::{BatchResult, ServiceId};
use grid_batch_withdrawals::{BatchAttempt, SignFn, SignedTransaction};

use super::{
    best_paid::{MAY_PAY, WITH_CURRENT_BATCH},
    error::{SigningError, to_stored},
    first::sign_with,
};
use crate::{Store, StoreError, connection::Connection};

impl Store {
    /// Stores a filler for a lower nonce: the withdrawal's own nonce cannot be mined before it.
    pub(super) fn fill_nonce(
        &self,
        attempt: &BatchAttempt,
        nonce: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        let service_id = &attempt.service_id;
        let number = to_stored("nonce", nonce).map_err(StoreError::from)?;
        self.pools.write()?.transaction(|connection| {
            let Some(found) = self.lock_for_signing(connection, attempt)? else { return Ok(None) };
            if found.payment.nonce.is_none_or(|assigned| assigned.nonce <= nonce) {
                return Ok(None);
            }
            match self.may_pay(connection, service_id, number)? {
                Some(true) => return Ok(None),
                Some(false) => {}
                None => self.insert_nonce(connection, service_id, nonce, None)?,
            }
            let key = (service_id.as_str().to_owned(), number);
            let mut stored = self.load_transactions(connection, slice::from_ref(&key))?;
            let stored = stored.remove(&key).unwrap_or_default();
            let position = stored.len();
            let filler = sign_with(nonce, sign)?;
            if !filler.is_filler {
                return Err(StoreError::from(SigningError::NotAFiller { nonce }).into());
            }
            if let Some(same) = stored.into_iter().find(|stored| stored.signed == filler) {
                return Ok(Some(same));
            }
            Ok(Some(self.insert_transaction(connection, service_id, filler, position)?))
        })
    }

    /// Whether a payment was, or may still be, made with this nonce; `None` if it was never assigned.
    fn may_pay(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        nonce: i64,
    ) -> Result<Option<bool>, StoreError> {
        let statement = self
            .statement(format!(
                "-- may_pay
                 select {MAY_PAY} as may_pay
                 from account_nonces n {WITH_CURRENT_BATCH}
                 where n.service_id = ? and n.nonce = ?"
            ))
            .text(service_id.as_str())
            .long(nonce);
        let rows: Vec<MayPayRow> = connection.load(&statement)?;
        Ok(rows.first().map(|row| row.may_pay))
    }
}

#[derive(QueryableByName)]
struct MayPayRow {
    #[diesel(sql_type = Bool)]
    may_pay: bool,
}
