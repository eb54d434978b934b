//! A build without optional parts creates only the tables of batches and works with them.
#![cfg(not(any(
    feature = "action-log",
    feature = "events",
    feature = "tokens",
    feature = "webhooks",
    feature = "withdrawals"
)))]
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::time::Duration;

use grid_batch_core::ItemId;
use grid_batch_core::batches::{
    Change, ChangeOutcome, Event, IntakeStore, LedgerStatus, NewBatch, RetentionStore,
};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::{
    ActionSource, Operator, OperatorAction, OperatorStore, OperatorTarget, OperatorVerb,
};
use grid_batch_core::queue::RoundStore;
use grid_batch_store::{ClaimOptions, ClaimStore, DatabaseUrl, Store, StoreOptions};
use grid_batch_test_postgres::TestDatabase;

fn batch(number: u8) -> NewBatch {
    NewBatch {
        service_id: "a::b".parse().unwrap(),
        batch_id: ItemId::from_bytes([number; 64]),
        signer: None,
        transaction_ids: vec![ItemId::from_bytes([number + 100; 64])],
        serialized_batch: vec![number],
        declared_access: None,
        label: None,
        client: None,
        declared_new: false,
        deadline: None,
        trace: None,
    }
}

/// Processes batches from intake to their ends, and pauses their service.
fn use_store(url: &DatabaseUrl) {
    let store = Store::open(url, StoreOptions::default()).unwrap();
    for list in store.add(&[&[batch(1), batch(2)]]).unwrap() {
        list.unwrap();
    }
    let claims = ClaimStore::register(store.clone(), ClaimOptions::default()).unwrap();
    claims.take(10).unwrap();
    for _ in 0..2 {
        let ready = claims.ready_services(None, 10).unwrap();
        let taken = claims.take_next(&ready).unwrap().remove(0);
        let accepted = Event::Outcome { attempt: taken.attempt, outcome: Outcome::Accepted };
        let committed = Event::status(LedgerStatus::Committed);
        let change = |event| Change::new(taken.service_id.clone(), taken.batch_id, event);
        let recorded = store.record(&[change(accepted), change(committed)]).unwrap();
        assert!(matches!(recorded[1], ChangeOutcome::Applied { .. }), "{recorded:?}");
    }
    let operator =
        Operator { name: "me".to_owned(), source: ActionSource::Program, instance: None };
    let action = OperatorAction {
        verb: OperatorVerb::Pause,
        target: OperatorTarget::Service("a::b".parse().unwrap()),
        reason: Some("look first".to_owned()),
        operator,
        dry_run: false,
    };
    store.act(&action).unwrap();
    assert_eq!(store.remove_ended_before(Duration::ZERO, None, 9).unwrap().batches, 2);
    claims.release().unwrap();
    assert!(Store::schema_version(url, &StoreOptions::default()).unwrap().is_current());
}

#[test]
fn batches_need_no_part_on_postgres() {
    use_store(&TestDatabase::create().url().parse().unwrap());
}

#[test]
fn batches_need_no_part_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    use_store(&format!("sqlite://{}/batches.db", dir.path().display()).parse().unwrap());
}
