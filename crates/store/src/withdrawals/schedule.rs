use std::collections::HashMap;

use grid_batch_core::{AddOutcome, NewBatch, Timestamp};
use grid_batch_withdrawals::{Withdrawal, WithdrawalConflict, WithdrawalId};

use super::{
    batch_of,
    rows::{WITHDRAWAL_COLUMNS, WithdrawalRow},
};
use crate::{
    Store, StoreError, connection::Connection, insert::insert, stamps::Stamps, statement::Rows,
};

/// The generation of a withdrawal that was just scheduled.
const FIRST: u32 = 1;

/// A withdrawal, with the batch by which it is tried first.
type Pair<'a> = (&'a Withdrawal, NewBatch);

impl Store {
    /// Stores withdrawals, each with the batch by which it is tried, all in one commit; but for those
    /// whose id another one has.
    ///
    /// Their batches are queued as [`Store::add`] would queue them. Of the same id there is ever one,
    /// however many ask for it at once: who derives the id of what may be paid once only from what it
    /// is paid for needs no lock of its own.
    ///
    /// ```no_run
    /// # use grid_batch_withdrawals::Withdrawal;
    /// # use grid_batch_core::AddOutcome;
    /// # fn example(store: grid_batch_store::Store, asked: Withdrawal) -> Result<(), Box<dyn std::error::Error>> {
    /// for answer in store.schedule(&[asked])? {
    ///     match answer? {
    ///         AddOutcome::Stored => println!("it will be paid"),
    ///         AddOutcome::AlreadyStored => println!("it was asked for before, and is paid once"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn schedule(
        &self,
        withdrawals: &[Withdrawal],
    ) -> Result<Vec<Result<AddOutcome, WithdrawalConflict>>, StoreError> {
        // Who asks for the same id at another service is held up by no lock of ours. The database
        // refuses the second, who then finds the first: each time at least one more.
        let mut tries_left = withdrawals.len();
        loop {
            match self.try_schedule(withdrawals) {
                Err(error) if error.is_duplicate() && tries_left > 0 => tries_left -= 1,
                done => return done,
            }
        }
    }

    fn try_schedule(
        &self,
        withdrawals: &[Withdrawal],
    ) -> Result<Vec<Result<AddOutcome, WithdrawalConflict>>, StoreError> {
        let pairs: Vec<Pair<'_>> =
            withdrawals.iter().map(|asked| (asked, batch_of(asked, FIRST))).collect();
        let now = self.now();
        self.pools.write()?.transaction(|connection| {
            let mut stamps = Stamps::reserve(connection, &batches(&pairs), now)?;
            let stored = self.find_withdrawals(connection, withdrawals)?;
            let (answers, fresh) = decide(&pairs, stored);
            let seqs = insert(connection, &batches(fresh.iter().copied()), &mut stamps)?;
            stamps.give_back(connection)?;
            self.insert_withdrawals(connection, &fresh, &seqs, now)?;
            Ok(answers)
        })
    }

    fn find_withdrawals(
        &self,
        connection: &mut Connection,
        withdrawals: &[Withdrawal],
    ) -> Result<Vec<Withdrawal>, StoreError> {
        let ids = withdrawals.iter().map(|withdrawal| &withdrawal.id.as_bytes()[..]);
        let statement = self
            .statement(format!(
                "-- find_withdrawals
                 select {WITHDRAWAL_COLUMNS}
                 from {{x}} join withdrawals w on w.withdrawal_id = x.withdrawal_id"
            ))
            .rows(Rows::default().bytes("withdrawal_id", ids));
        let rows: Vec<WithdrawalRow> = connection.load(&statement)?;
        rows.into_iter().map(WithdrawalRow::into_withdrawal).collect()
    }

    fn insert_withdrawals(
        &self,
        connection: &mut Connection,
        fresh: &[&Pair<'_>],
        batch_seqs: &[i64],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let new = || fresh.iter().map(|(withdrawal, _)| *withdrawal);
        let statement = self
            .statement(
                "-- insert_withdrawals
                 insert into withdrawals (withdrawal_id, service_id, kind, reward_id, pool,
                     beneficiary, amount, batch_seq, created_at)
                 select withdrawal_id, service_id, kind, reward_id, pool,
                     beneficiary, amount, batch_seq, created_at
                 from {x} order by withdrawal_id",
            )
            .rows(
                Rows::default()
                    .bytes("withdrawal_id", new().map(|w| &w.id.as_bytes()[..]))
                    .text("service_id", new().map(|w| w.service_id.as_str()))
                    .text("kind", new().map(|w| w.kind.as_str()))
                    .optional_bytes(
                        "reward_id",
                        new().map(|w| w.reward_id.as_ref().map(|id| &id.as_bytes()[..])),
                    )
                    .text("pool", new().map(|w| w.pool.as_str()))
                    .text("beneficiary", new().map(|w| w.beneficiary.as_str()))
                    .text("amount", new().map(|w| w.amount.as_str()))
                    .long("batch_seq", batch_seqs.iter().copied())
                    .long("created_at", new().map(|_| now.as_micros())),
            );
        connection.execute(&statement).map(drop)
    }
}

fn batches<'p>(pairs: impl IntoIterator<Item = &'p Pair<'p>>) -> Vec<&'p NewBatch> {
    pairs.into_iter().map(|(_, batch)| batch).collect()
}

/// Whether it is asked for once more. Its pool may have been given to another gas admin meanwhile.
fn is_the_same(stored: &Withdrawal, asked: &Withdrawal) -> bool {
    let Withdrawal { id, service_id: _, kind, reward_id, pool, beneficiary, amount } = stored;
    (id, kind, reward_id, pool, beneficiary, amount)
        == (
            &asked.id,
            &asked.kind,
            &asked.reward_id,
            &asked.pool,
            &asked.beneficiary,
            &asked.amount,
        )
}

/// What becomes of each, and which are not stored yet.
fn decide<'p>(
    pairs: &'p [Pair<'p>],
    stored: Vec<Withdrawal>,
) -> (Vec<Result<AddOutcome, WithdrawalConflict>>, Vec<&'p Pair<'p>>) {
    let mut known: HashMap<WithdrawalId, Withdrawal> =
        stored.into_iter().map(|withdrawal| (withdrawal.id, withdrawal)).collect();
    let mut fresh = Vec::new();
    let answers = pairs
        .iter()
        .map(|pair| match known.get(&pair.0.id) {
            None => {
                known.insert(pair.0.id, pair.0.clone());
                fresh.push(pair);
                Ok(AddOutcome::Stored)
            }
            Some(stored) if is_the_same(stored, pair.0) => Ok(AddOutcome::AlreadyStored),
            Some(stored) => Err(WithdrawalConflict { stored: Box::new(stored.clone()) }),
        })
        .collect();
    (answers, fresh)
}
