//! The ledger that the database is bound to: recorded once, and confirmed by each instance.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use grid_batch_core::{InstanceId, LedgerConfirmation, LedgerIdentity, RecordedLedger, Timestamp};

use crate::{
    restored::expect_no_running_instances,
    sql::{Connection, Dialect, Statement, Store, StoreError},
};

/// The ledger that the database is bound to, if it is bound.
pub(crate) fn recorded_ledger(store: &Store) -> Result<Option<RecordedLedger>, StoreError> {
    find_ledger(&mut *store.pools.read()?, "")
}

/// Binds the database to this ledger if it is bound to none. If it is bound to this one, the instance
/// may take services from then on.
pub(crate) fn confirm_ledger(
    store: &Store,
    instance: &InstanceId,
    ledger: &LedgerIdentity,
) -> Result<LedgerConfirmation, StoreError> {
    let now = store.now();
    store.pools.write()?.write_transaction(|connection| confirm(connection, instance, ledger, now))
}

/// Part of a transaction. The row is locked, so that it does not change before the commit.
pub(super) fn confirm(
    connection: &mut Connection,
    instance: &InstanceId,
    ledger: &LedgerIdentity,
    now: Timestamp,
) -> Result<LedgerConfirmation, StoreError> {
    let dialect = connection.dialect();
    let lock = dialect.locking("for key share of l");
    let mut recorded = find_ledger(connection, lock)?;
    if recorded.is_none() {
        // Does nothing if another instance has just recorded its ledger.
        connection.execute(&record_ledger(dialect, ledger, now))?;
        recorded = find_ledger(connection, lock)?;
    }
    match recorded {
        Some(recorded) if !recorded.identity.agrees_with(ledger) => {
            Ok(LedgerConfirmation::Other(recorded))
        }
        Some(recorded) => {
            if ledger.tells_more_than(&recorded.identity)
                && connection.execute(&complete_ledger(dialect, ledger, &recorded.identity))? == 0
            {
                // Another instance has just completed it, maybe with something else.
                return confirm(connection, instance, ledger, now);
            }
            connection.execute(&set_confirmed(dialect, instance))?;
            Ok(LedgerConfirmation::Confirmed)
        }
        None => Err(StoreError::corrupt("the ledger was recorded and is not there")),
    }
}

/// Binds the database to this ledger, whatever it was bound to before. No instance may be running.
///
/// An instance that was only paused has to confirm its ledger again before it takes anything: removing
/// the row resets the reference to it.
pub(crate) fn rebind_ledger(store: &Store, ledger: &LedgerIdentity) -> Result<(), StoreError> {
    let now = store.now();
    store.pools.write()?.write_transaction(|connection| {
        expect_no_running_instances(connection)?;
        let dialect = connection.dialect();
        connection.execute(&Statement::new(
            dialect,
            "-- remove_ledger\n delete from ledger where id = 1",
        ))?;
        connection.execute(&record_ledger(dialect, ledger, now)).map(drop)
    })
}

fn find_ledger(
    connection: &mut Connection,
    lock: &str,
) -> Result<Option<RecordedLedger>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        format!(
            "-- find_ledger
             select l.kind, l.identity, l.name, l.recorded_at from ledger l where l.id = 1 {lock}"
        ),
    );
    let rows: Vec<LedgerRow> = connection.load(&statement)?;
    Ok(rows.into_iter().next().map(LedgerRow::into_recorded))
}

fn record_ledger<'a>(
    dialect: Dialect,
    ledger: &'a LedgerIdentity,
    now: Timestamp,
) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- record_ledger
         insert into ledger (id, kind, identity, name, recorded_at) values (1, ?, ?, ?, ?)
         on conflict (id) do nothing",
    )
    .text(&ledger.kind)
    .text(/* identity */ &ledger.id)
    .text(&ledger.name)
    .long(/* recorded_at */ now.as_micros())
}

/// Adds what the first node that was asked did not tell.
fn complete_ledger<'a>(
    dialect: Dialect,
    ledger: &'a LedgerIdentity,
    recorded: &'a LedgerIdentity,
) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- complete_ledger\n update ledger set identity = ? where id = 1 and identity = ?",
    )
    .text(&ledger.id)
    .text(&recorded.id)
}

fn set_confirmed(dialect: Dialect, instance: &InstanceId) -> Statement<'_> {
    Statement::new(
        dialect,
        "-- confirm_ledger
         update instances set ledger_id = 1 where instance_id = ? and ledger_id is null",
    )
    .text(instance.as_str())
}

#[derive(QueryableByName)]
struct LedgerRow {
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    identity: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = BigInt)]
    recorded_at: i64,
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
