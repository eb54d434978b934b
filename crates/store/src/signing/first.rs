use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable},
};
use grid_batch_core::{BatchResult, ServiceId};
use grid_batch_withdrawals::{BatchAttempt, NewSignedTransaction, SignFn, SignedTransaction};

use super::{
    error::{SigningError, stored},
    payment::{NumberedPayment, may_be_paid},
    rows::whole,
};
use crate::{Store, StoreError, connection::Connection, statement::Rows};

impl Store {
    /// Takes the account's next nonce, has it signed with, and keeps both.
    pub(super) fn take_nonce(
        &self,
        turn: &BatchAttempt,
        at_least: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.pools.write()?.transaction(|connection| {
            let Some(numbered) = self.lock_turn(connection, turn)? else { return Ok(None) };
            let payment = &numbered.payment;
            if payment.cancel_requested || payment.nonce.as_ref().is_some_and(may_be_paid) {
                return Ok(None);
            }
            let next = self.next_nonce_of(connection, &turn.service_id)?;
            let nonce = next.map_or(at_least, |next| next.max(at_least));
            let signed = signed_with(nonce, sign)?;
            self.insert_nonce(connection, &turn.service_id, nonce, Some(&numbered))?;
            Ok(Some(self.insert_signed(connection, &turn.service_id, signed, 0)?))
        })
    }

    pub(super) fn read_next_nonce(
        &self,
        service_id: &ServiceId,
    ) -> Result<Option<u64>, StoreError> {
        self.pools.read()?.snapshot(|connection| self.next_nonce_of(connection, service_id))
    }

    /// The nonce after the last one that the account has.
    fn next_nonce_of(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
    ) -> Result<Option<u64>, StoreError> {
        let statement = self
            .statement(
                "-- highest_nonce
                 select max(n.nonce) as nonce from account_nonces n where n.service_id = ?",
            )
            .text(service_id.as_str());
        let rows: Vec<HighestRow> = connection.load(&statement)?;
        let highest = rows.first().and_then(|row| row.nonce);
        Ok(highest.map(whole).transpose()?.map(|highest| highest + 1))
    }

    /// Keeps a nonce, of this withdrawal or of none.
    pub(super) fn insert_nonce(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        nonce: u64,
        whose: Option<&NumberedPayment>,
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
                    .long("nonce", [stored("nonce", nonce)?])
                    .optional_long("withdrawal_seq", [whose.map(|it| it.withdrawal_seq)])
                    .optional_long("generation", [whose.map(|it| it.payment.generation.into())])
                    .long("taken_at", [self.now().as_micros()]),
            );
        connection.execute(&statement).map(drop)
    }
}

/// What is signed with this nonce, and no other.
pub(super) fn signed_with(nonce: u64, sign: &mut SignFn<'_>) -> BatchResult<NewSignedTransaction> {
    let signed = sign(nonce)?;
    if signed.nonce != nonce {
        let error = SigningError::OtherNonce { given: signed.nonce, taken: nonce };
        return Err(StoreError::from(error).into());
    }
    Ok(signed)
}

#[derive(QueryableByName)]
struct HighestRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    nonce: Option<i64>,
}
