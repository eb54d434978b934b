use grid_batch_core::ServiceId;
use grid_batch_withdrawals::NonceOutcome;

use super::{
    error::{SigningError, stored},
    rows::{SpentRow, spent_columns},
};
use crate::{Store, StoreError, connection::Connection, statement::Rows};

impl Store {
    /// Writes down for good what became of a nonce.
    pub(super) fn write_spent(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        spent: &NonceOutcome,
    ) -> Result<(), StoreError> {
        let number = stored("nonce", nonce)?;
        self.pools.write()?.transaction(|connection| {
            let Some(row) = self.lock_nonce(connection, service_id, number)? else {
                return Err(unknown(service_id, nonce).into());
            };
            match row.read()? {
                None => self.update_spent(connection, service_id, number, spent),
                Some(stored) if stored == *spent => Ok(()),
                Some(stored) => Err(otherwise(service_id, nonce, stored, spent).into()),
            }
        })
    }

    fn lock_nonce(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        nonce: i64,
    ) -> Result<Option<SpentRow>, StoreError> {
        let lock = self.pools.dialect().locking("for update of n");
        let statement = self
            .statement(format!(
                "-- lock_nonce
                 select n.spent, n.pool_withdrawal_id from account_nonces n
                 where n.service_id = ? and n.nonce = ? {lock}"
            ))
            .text(service_id.as_str())
            .long(nonce);
        let rows: Vec<SpentRow> = connection.load(&statement)?;
        Ok(rows.into_iter().next())
    }

    fn update_spent(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        nonce: i64,
        spent: &NonceOutcome,
    ) -> Result<(), StoreError> {
        let (spent, pool_withdrawal_id) = spent_columns(spent);
        let statement = self
            .statement(
                "-- spend
                 update account_nonces as n
                 set spent = x.spent, pool_withdrawal_id = x.pool_withdrawal_id
                 from {x} where n.service_id = x.service_id and n.nonce = x.nonce",
            )
            .rows(
                Rows::default()
                    .text("service_id", [service_id.as_str()])
                    .long("nonce", [nonce])
                    .text("spent", [spent])
                    .optional_text("pool_withdrawal_id", [pool_withdrawal_id]),
            );
        connection.execute(&statement).map(drop)
    }
}

fn unknown(service_id: &ServiceId, nonce: u64) -> SigningError {
    SigningError::UnknownNonce { service_id: service_id.clone(), nonce }
}

fn otherwise(
    service_id: &ServiceId,
    nonce: u64,
    stored: NonceOutcome,
    given: &NonceOutcome,
) -> SigningError {
    let service_id = service_id.clone();
    SigningError::SpentOtherwise { service_id, nonce, stored, given: given.clone() }
}
