use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable},
};
use grid_batch_core::{BatchResult, ServiceId, Sign, SignedTransaction, Turn};

use super::{
    error::{SigningError, stored},
    payment::{NumberedPayment, may_be_paid},
};
use crate::{Store, StoreError, connection::Connection, statement::Rows};

impl Store {
    /// Takes the account's next nonce, has it signed with, and keeps both.
    pub(super) fn take_nonce(
        &self,
        turn: &Turn,
        at_least: u64,
        sign: &mut Sign<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.pools.write()?.transaction(|connection| {
            let Some(numbered) = self.lock_turn(connection, turn)? else { return Ok(None) };
            let payment = &numbered.payment;
            if payment.cancelled || payment.open.as_ref().is_some_and(may_be_paid) {
                return Ok(None);
            }
            let nonce = self.next_nonce(connection, &turn.service_id, at_least)?;
            let signed = sign(nonce)?;
            if signed.nonce != nonce {
                let error = SigningError::OtherNonce { given: signed.nonce, taken: nonce };
                return Err(StoreError::from(error).into());
            }
            self.insert_nonce(connection, &turn.service_id, nonce, &numbered)?;
            Ok(Some(self.insert_signed(connection, &turn.service_id, signed, 0)?))
        })
    }

    /// The nonce after the last one, `at_least` this.
    fn next_nonce(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        at_least: u64,
    ) -> Result<u64, StoreError> {
        let statement = self
            .statement(
                "-- highest_nonce
                 select max(n.nonce) as nonce from account_nonces n where n.service_id = ?",
            )
            .text(service_id.as_str());
        let rows: Vec<HighestRow> = connection.load(&statement)?;
        let Some(highest) = rows.first().and_then(|row| row.nonce) else { return Ok(at_least) };
        let highest = u64::try_from(highest).map_err(StoreError::corrupt)?;
        Ok(at_least.max(highest + 1))
    }

    fn insert_nonce(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        nonce: u64,
        NumberedPayment { withdrawal_seq, payment }: &NumberedPayment,
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
                    .long("withdrawal_seq", [*withdrawal_seq])
                    .long("generation", [i64::from(payment.generation)])
                    .long("taken_at", [self.now().as_micros()]),
            );
        connection.execute(&statement).map(drop)
    }
}

#[derive(QueryableByName)]
struct HighestRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    nonce: Option<i64>,
}
