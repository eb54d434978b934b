use std::slice;

use diesel::{QueryableByName, sql_types::Bool};
use grid_batch_core::{BatchResult, ServiceId};
use grid_batch_withdrawals::{BatchAttempt, SignFn, SignedTransaction};

use super::{
    best_paid::{MAY_PAY, WITH_PRESENT_BATCH},
    error::{SigningError, stored},
    first::signed_with,
};
use crate::{Store, StoreError, connection::Connection};

impl Store {
    /// Keeps a transaction that only uses up a nonce before the one that a withdrawal has, so that
    /// this is not waited for in vain.
    pub(super) fn fill_nonce(
        &self,
        turn: &BatchAttempt,
        nonce: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        let service_id = &turn.service_id;
        let number = stored("nonce", nonce).map_err(StoreError::from)?;
        self.pools.write()?.transaction(|connection| {
            let Some(numbered) = self.lock_turn(connection, turn)? else { return Ok(None) };
            if numbered.payment.nonce.is_none_or(|open| open.nonce <= nonce) {
                return Ok(None);
            }
            match self.may_pay_with(connection, service_id, number)? {
                Some(true) => return Ok(None),
                Some(false) => {}
                None => self.insert_nonce(connection, service_id, nonce, None)?,
            }
            let key = (service_id.as_str().to_owned(), number);
            let mut kept = self.signed_with(connection, slice::from_ref(&key))?;
            let kept = kept.remove(&key).unwrap_or_default();
            let position = kept.len();
            let filler = signed_with(nonce, sign)?;
            if !filler.is_filler {
                return Err(StoreError::from(SigningError::NoFiller { nonce }).into());
            }
            if let Some(same) = kept.into_iter().find(|kept| kept.signed == filler) {
                return Ok(Some(same));
            }
            Ok(Some(self.insert_signed(connection, service_id, filler, position)?))
        })
    }

    /// Whether a payment may be made with this nonce; `None`: it was never taken.
    fn may_pay_with(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        nonce: i64,
    ) -> Result<Option<bool>, StoreError> {
        let statement = self
            .statement(format!(
                "-- may_pay_with
                 select {MAY_PAY} as may_pay
                 from account_nonces n {WITH_PRESENT_BATCH}
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
