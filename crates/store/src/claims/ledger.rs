//! The ledger that the database is bound to: recorded once, and confirmed by each instance.

use std::sync::PoisonError;

use grid_batch_core::Timestamp;
use grid_batch_core::claims::InstanceId;
use grid_batch_core::ledger::{LedgerConfirmation, LedgerIdentity, RecordedLedger};
use grid_batch_core::operators::{ActionEffect, OperatorRequest, OperatorTarget, OperatorVerb};

use crate::{
    action_log::{Logged, logged},
    restored::expect_no_running_instances,
    sql::{ClaimStore, Connection, Statement, Store, StoreError, result_row},
};

impl Store {
    /// The ledger that the database is bound to; `None` before the first instance has confirmed its
    /// ledger ([`ClaimStore::confirm_ledger`](crate::ClaimStore::confirm_ledger)).
    pub fn ledger(&self) -> Result<Option<RecordedLedger>, StoreError> {
        find_ledger(&mut *self.pools.read()?, "")
    }

    /// Binds the database to this ledger, whatever it was bound to before. Refused while instances run.
    ///
    /// **Open batches that the earlier ledger may have are searched at this one.** If it does not have them, they are
    /// submitted to it. An instance that was only paused must confirm its ledger again before it takes anything,
    /// because removing the row resets the reference to it.
    pub fn rebind_ledger(
        &self,
        ledger: &LedgerIdentity,
        request: &OperatorRequest,
    ) -> Result<(), StoreError> {
        let now = self.now();
        logged(self, request, OperatorVerb::AdoptLedger, None, |connection| {
            expect_no_running_instances(connection)?;
            let before = find_ledger(connection, "")?.map(|recorded| described(&recorded.identity));
            connection
                .execute(&Statement::new("-- remove_ledger\n delete from ledger where id = 1"))?;
            connection.execute(&record_ledger(ledger, now))?;
            let before = before.unwrap_or_else(|| "bound to no ledger".to_owned());
            let effect = ActionEffect::in_words(before, described(ledger));
            Ok(Logged::changed((), OperatorTarget::Database, effect))
        })
    }
}

fn described(LedgerIdentity { kind, id, name }: &LedgerIdentity) -> String {
    let parts = [kind, name, id].map(String::as_str);
    let given: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("bound to {}", given.join(" "))
}

impl ClaimStore {
    /// Compares the ledger of this instance with the one that the database is bound to, and binds the
    /// database to it if it is bound to none.
    ///
    /// Once the database is bound to a ledger, an instance takes services and batches only after it
    /// has confirmed that its nodes belong to the same one.
    pub fn confirm_ledger(
        &self,
        ledger: &LedgerIdentity,
    ) -> Result<LedgerConfirmation, StoreError> {
        let (instance, now) = (self.instance(), self.store.now());
        let confirmation = self
            .store
            .pools
            .write()?
            .write_transaction(|connection| confirm(connection, &instance, ledger, now))?;
        if confirmation == LedgerConfirmation::Confirmed {
            let mut confirmed = self.ledger.write().unwrap_or_else(PoisonError::into_inner);
            *confirmed = Some(ledger.clone());
        }
        Ok(confirmation)
    }
}

/// Binds the database to this ledger if it is bound to none. If it is bound to this one, the instance may take services
/// from then on. Must be called in a transaction.
///
/// The row is locked, so that it does not change before the commit.
pub(super) fn confirm(
    connection: &mut Connection,
    instance: &InstanceId,
    ledger: &LedgerIdentity,
    now: Timestamp,
) -> Result<LedgerConfirmation, StoreError> {
    let lock = connection.dialect().locking("for key share of l");
    let mut recorded = find_ledger(connection, lock)?;
    if recorded.is_none() {
        // This does nothing if another instance has just recorded its ledger.
        connection.execute(&record_ledger(ledger, now))?;
        recorded = find_ledger(connection, lock)?;
    }
    match recorded {
        Some(recorded) if !recorded.identity.agrees_with(ledger) => {
            Ok(LedgerConfirmation::Other(recorded))
        }
        Some(recorded) => {
            if ledger.tells_more_than(&recorded.identity)
                && connection.execute(&complete_ledger(ledger, &recorded.identity))? == 0
            {
                // Another instance has just completed it, possibly with other details.
                return confirm(connection, instance, ledger, now);
            }
            let set_confirmed = Statement::new(
                "-- confirm_ledger
                 update instances set ledger_id = 1 where instance_id = ? and ledger_id is null",
            );
            connection.execute(&set_confirmed.text(instance.as_str()))?;
            Ok(LedgerConfirmation::Confirmed)
        }
        None => Err(StoreError::corrupt("the ledger was recorded and is not there")),
    }
}

fn find_ledger(
    connection: &mut Connection,
    lock: &str,
) -> Result<Option<RecordedLedger>, StoreError> {
    let statement = Statement::new(format!(
        "-- find_ledger
         select l.kind, l.identity, l.name, l.recorded_at from ledger l where l.id = 1 {lock}"
    ));
    let rows: Vec<LedgerRow> = connection.load(&statement)?;
    Ok(rows.into_iter().next().map(LedgerRow::into_recorded))
}

fn record_ledger<'a>(ledger: &'a LedgerIdentity, now: Timestamp) -> Statement<'a> {
    Statement::new(
        "-- record_ledger
         insert into ledger (id, kind, identity, name, recorded_at) values (1, ?, ?, ?, ?)
         on conflict (id) do nothing",
    )
    .text(&ledger.kind)
    .text(/* identity */ &ledger.id)
    .text(&ledger.name)
    .long(/* recorded_at */ now.as_micros())
}

/// Adds what the first node that was asked did not report.
fn complete_ledger<'a>(ledger: &'a LedgerIdentity, recorded: &'a LedgerIdentity) -> Statement<'a> {
    Statement::new(
        "-- complete_ledger\n update ledger set identity = ? where id = 1 and identity = ?",
    )
    .text(&ledger.id)
    .text(&recorded.id)
}

result_row! {
    struct LedgerRow {
        kind: String,
        identity: String,
        name: String,
        recorded_at: i64,
    }
}

impl LedgerRow {
    fn into_recorded(self) -> RecordedLedger {
        let Self { kind, identity: id, name, recorded_at } = self;
        RecordedLedger {
            identity: LedgerIdentity { kind, id, name },
            recorded_at: Timestamp::from_micros(recorded_at),
        }
    }
}
