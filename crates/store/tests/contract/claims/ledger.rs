use std::thread;

use grid_batch_core::Timestamp;
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::{LedgerConfirmation, LedgerIdentity};
use grid_batch_store::{ClaimError, StoreError};

use super::fixture::ClaimExt;
use crate::fixture::{Database, StoreExt, batch, by_program, on_both};

on_both! {
    first_instance_binds_the_database,
    instance_of_another_ledger_takes_nothing,
    node_that_reports_less_belongs_to_the_ledger,
    database_without_a_ledger_is_not_checked,
    instance_that_registers_again_stays_confirmed,
    running_instance_keeps_the_ledger,
    paused_instance_of_the_earlier_ledger_takes_nothing,
}

fn ledger(id: &str) -> LedgerIdentity {
    LedgerIdentity { id: id.to_owned(), ..LedgerIdentity::new("sawtooth") }
}

fn first_instance_binds_the_database(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    assert_eq!(one.store().ledger().unwrap(), None);
    db.clock.set(Timestamp::from_micros(7));
    assert_eq!(one.confirm_ledger(&ledger("a")).unwrap(), LedgerConfirmation::Confirmed);
    let recorded = one.store().ledger().unwrap().unwrap();
    assert_eq!((&recorded.identity, recorded.recorded_at.as_micros()), (&ledger("a"), 7));
    for (kind, id, name) in [("sawtooth", "b", ""), ("scabbard", "a", ""), ("sawtooth", "a", "n")] {
        let [kind, id, name] = [kind, id, name].map(str::to_owned);
        let confirmation = other.confirm_ledger(&LedgerIdentity { kind, id, name }).unwrap();
        assert_eq!(confirmation, LedgerConfirmation::Other(recorded.clone()));
    }
    assert_eq!(other.confirm_ledger(&ledger("a")).unwrap(), LedgerConfirmation::Confirmed);
}

fn instance_of_another_ledger_takes_nothing(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.confirm_ledger(&ledger("a")).unwrap();
    other.confirm_ledger(&ledger("b")).unwrap();
    assert!(other.take_all().is_empty());
    assert!(other.take_services(&["a::1".parse().unwrap()]).unwrap().claims.is_empty());
    assert_eq!(one.take_all(), ["a::1", "a::2"]);
}

fn node_that_reports_less_belongs_to_the_ledger(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    let recorded = || one.store().ledger().unwrap().unwrap().identity;
    assert_eq!(one.confirm_ledger(&ledger("chain 1")).unwrap(), LedgerConfirmation::Confirmed);
    // The first node that reports more completes the record.
    let full = ledger("chain 1, genesis block 0xab");
    for identity in [&full, &ledger("chain 1")] {
        assert_eq!(other.confirm_ledger(identity).unwrap(), LedgerConfirmation::Confirmed);
        assert_eq!(recorded(), full);
    }
    for id in ["chain 1, genesis block 0xcd", "chain 10", "chain 1, genesis block 0xabc"] {
        let confirmation = one.confirm_ledger(&ledger(id)).unwrap();
        assert!(matches!(confirmation, LedgerConfirmation::Other(_)), "{id}");
    }
    assert_eq!(recorded(), full);
}

fn database_without_a_ledger_is_not_checked(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    assert_eq!(one.take_all(), ["a::1", "a::2"]);
    // From now on the database is bound, and an instance that has not confirmed the ledger takes no batch.
    other.confirm_ledger(&ledger("a")).unwrap();
    assert!(one.takes_nothing_of("a::1"));
    one.confirm_ledger(&ledger("a")).unwrap();
    assert_eq!(one.take_batch("a::1").attempt, 1);
}

fn instance_that_registers_again_stays_confirmed(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::1", 1)]);
    instance.confirm_ledger(&ledger("a")).unwrap();
    db.execute("delete from instances").unwrap();
    instance.register_again().unwrap();
    assert_eq!(instance.take_all(), ["a::1"]);

    db.execute("delete from instances").unwrap();
    instance.store().rebind_ledger(&ledger("b"), &by_program()).unwrap();
    instance.register_again().unwrap();
    assert!(instance.take_all().is_empty());
}

fn running_instance_keeps_the_ledger(db: &Database) {
    let instance = db.instance();
    instance.confirm_ledger(&ledger("a")).unwrap();
    let error = instance.store().rebind_ledger(&ledger("b"), &by_program()).unwrap_err();
    assert!(
        matches!(&error, StoreError::Claims(ClaimError::InstancesRunning { instances })
            if *instances == [instance.instance()]),
        "{error}"
    );
    assert_eq!(instance.store().ledger().unwrap().unwrap().identity, ledger("a"));
    instance.release().unwrap();
    instance.store().rebind_ledger(&ledger("b"), &by_program()).unwrap();
    assert_eq!(instance.store().ledger().unwrap().unwrap().identity, ledger("b"));
}

fn paused_instance_of_the_earlier_ledger_takes_nothing(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    instance.confirm_ledger(&ledger("a")).unwrap();
    instance.take_services(&["a::1".parse().unwrap()]).unwrap();
    db.pass_idle_expiry(&instance);
    instance.store().rebind_ledger(&ledger("b"), &by_program()).unwrap();
    assert!(instance.renew().unwrap());
    assert!(instance.takes_nothing_of("a::1"));
    assert!(instance.take_all().is_empty());
    let confirmation = instance.confirm_ledger(&ledger("a")).unwrap();
    assert!(matches!(confirmation, LedgerConfirmation::Other(_)), "{confirmation:?}");
}

#[test]
fn one_of_concurrent_ledgers_is_recorded() {
    let db = Database::postgres();
    let instances: Vec<_> = (0..4).map(|_| db.instance()).collect();
    let confirmed = thread::scope(|scope| {
        let confirmations: Vec<_> = instances
            .iter()
            .enumerate()
            .map(|(n, instance)| {
                scope.spawn(move || instance.confirm_ledger(&ledger(&n.to_string())).unwrap())
            })
            .collect();
        confirmations
            .into_iter()
            .map(|confirmation| confirmation.join().unwrap())
            .collect::<Vec<_>>()
    });
    let count = confirmed.iter().filter(|one| **one == LedgerConfirmation::Confirmed).count();
    assert_eq!(count, 1, "{confirmed:?}");
    assert_eq!(db.number("select count(ledger_id) as number from instances"), 1);
}
