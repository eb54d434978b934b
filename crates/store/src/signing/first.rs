use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable},
};
use grid_batch_core::{BatchResult, ServiceId};
use grid_batch_withdrawals::{BatchAttempt, NewSignedTransaction, SignFn, SignedTransaction};

use super::{
    error::{SigningError, to_stored},
    payment::{PaymentWithSeq, has_paid_or_may_pay},
    signed::to_u64,
};
use crate::{Store, StoreError, connection::Connection, statement::Rows};

impl Store {
    /// Assigns the account's next nonce to the withdrawal, calls `sign` with it, and stores nonce and
    /// transaction in one commit.
    pub(super) fn assign_nonce(
        &self,
        attempt: &BatchAttempt,
        at_least: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.pools.write()?.transaction(|connection| {
            let Some(found) = self.lock_for_signing(connection, attempt)? else { return Ok(None) };
            let payment = &found.payment;
            let is_paid = payment.nonce.as_ref().is_some_and(has_paid_or_may_pay);
            if payment.cancel_requested || is_paid {
                return Ok(None);
            }
            let next = self.find_next_nonce(connection, &attempt.service_id)?;
            let nonce = next.map_or(at_least, |next| next.max(at_least));
            let signed = sign_with(nonce, sign)?;
            self.insert_nonce(connection, &attempt.service_id, nonce, Some(&found))?;
            Ok(Some(self.insert_transaction(connection, &attempt.service_id, signed, 0)?))
        })
    }

    pub(super) fn next_nonce(&self, service_id: &ServiceId) -> Result<Option<u64>, StoreError> {
        self.pools.read()?.snapshot(|connection| self.find_next_nonce(connection, service_id))
    }

    /// The nonce after the highest one that was assigned.
    fn find_next_nonce(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
    ) -> Result<Option<u64>, StoreError> {
        let statement = self
            .statement(
                "-- next_nonce
                 select max(n.nonce) as nonce from account_nonces n where n.service_id = ?",
            )
            .text(service_id.as_str());
        let rows: Vec<HighestNonceRow> = connection.load(&statement)?;
        let highest = rows.first().and_then(|row| row.nonce);
        Ok(highest.map(to_u64).transpose()?.map(|highest| highest + 1))
    }

    /// Stores a nonce of this withdrawal. `None`: it is only filled and belongs to no withdrawal.
    pub(super) fn insert_nonce(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        nonce: u64,
        owner: Option<&PaymentWithSeq>,
    ) -> Result<(), StoreError> {
        let statement = self
            .statement(
                "-- insert_nonce
                 insert into account_nonces
                     (service_id, nonce, withdrawal_seq, generation, taken_at)
                 select service_id, nonce, withdrawal_seq, generation, taken_at from {x}",
            )
            .rows(
                Rows::default()
                    .text("service_id", [service_id.as_str()])
                    .long("nonce", [to_stored("nonce", nonce)?])
                    .optional_long("withdrawal_seq", [owner.map(|it| it.withdrawal_seq)])
                    .optional_long("generation", [owner.map(|it| it.payment.generation.into())])
                    .long("taken_at", [self.now().as_micros()]),
            );
        connection.execute(&statement).map(drop)
    }
}

/// Signs a transaction and checks that it has this nonce.
pub(super) fn sign_with(nonce: u64, sign: &mut SignFn<'_>) -> BatchResult<NewSignedTransaction> {
    let signed = sign(nonce)?;
    if signed.nonce != nonce {
        let error = SigningError::WrongNonce { signed: signed.nonce, assigned: nonce };
        return Err(StoreError::from(error).into());
    }
    Ok(signed)
}

#[derive(QueryableByName)]
struct HighestNonceRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    nonce: Option<i64>,
}
