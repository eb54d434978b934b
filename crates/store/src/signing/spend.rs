use grid_batch_core::ServiceId;
use grid_batch_withdrawals::NonceOutcome;

use super::{
    error::{SigningError, to_stored},
    rows::{OutcomeRow, outcome_columns},
};
use crate::{Store, StoreError, connection::Connection, statement::Rows};

impl Store {
    /// Stores the final outcome of a nonce. A different outcome that is stored already is an error.
    pub(super) fn close_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        outcome: &NonceOutcome,
    ) -> Result<(), StoreError> {
        let number = to_stored("nonce", nonce)?;
        self.pools.write()?.transaction(|connection| {
            let Some(row) = self.lock_nonce(connection, service_id, number)? else {
                return Err(unassigned(service_id, nonce).into());
            };
            match row.read()? {
                None => self.update_outcome(connection, service_id, number, outcome),
                Some(stored) if stored == *outcome => Ok(()),
                Some(stored) => Err(conflict(service_id, nonce, stored, outcome).into()),
            }
        })
    }

    fn lock_nonce(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        nonce: i64,
    ) -> Result<Option<OutcomeRow>, StoreError> {
        let lock = self.pools.dialect().locking("for update of n");
        let statement = self
            .statement(format!(
                "-- lock_nonce
                 select n.spent, n.pool_withdrawal_id from account_nonces n
                 where n.service_id = ? and n.nonce = ? {lock}"
            ))
            .text(service_id.as_str())
            .long(nonce);
        let rows: Vec<OutcomeRow> = connection.load(&statement)?;
        Ok(rows.into_iter().next())
    }

    fn update_outcome(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        nonce: i64,
        outcome: &NonceOutcome,
    ) -> Result<(), StoreError> {
        let (spent, pool_withdrawal_id) = outcome_columns(outcome);
        let statement = self
            .statement(
                "-- close_nonce
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

fn unassigned(service_id: &ServiceId, nonce: u64) -> SigningError {
    SigningError::UnassignedNonce { service_id: service_id.clone(), nonce }
}

fn conflict(
    service_id: &ServiceId,
    nonce: u64,
    stored: NonceOutcome,
    given: &NonceOutcome,
) -> SigningError {
    let service_id = service_id.clone();
    SigningError::OutcomeConflict { service_id, nonce, stored, given: given.clone() }
}
