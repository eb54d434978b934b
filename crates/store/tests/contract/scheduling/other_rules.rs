//! Instances whose rules about declared access differ from those with which open batches were stored.

use grid_batch_core::ServiceId;
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_store::{ClaimOptions, ClaimStore, Store, StoreError};

use super::fixture::{SERVICE, accessing, number, writing};
use crate::fixture::{Database, StoreExt, TestStore, on_both, service};

on_both! {
    instance_with_other_rules_about_access_is_refused,
    batches_of_services_that_the_ledger_cannot_have_are_left,
}

fn instance_with_other_rules_about_access_is_refused(db: &Database) {
    let register = |store: Store| ClaimStore::register(store, ClaimOptions::default());
    db.open_parallel().add_all(&[writing(1, "aa")]);
    let refused = register(db.open().into_store()).unwrap_err();
    assert!(matches!(refused, StoreError::OtherScheduling { expects: false }), "{refused}");
    register(db.open_parallel().into_store()).unwrap();

    let db = db.another();
    db.open().add_all(&[writing(1, "aa")]);
    let refused = register(db.open_parallel().into_store()).unwrap_err();
    assert!(matches!(refused, StoreError::OtherScheduling { expects: true }), "{refused}");
}

fn batches_of_services_that_the_ledger_cannot_have_are_left(db: &Database) {
    expect_left(db, Database::open, Database::open_parallel);
    expect_left(&db.another(), Database::open_parallel, Database::open);
}

/// Asserts that batches of one kind do not change while an instance of the other kind runs, unless they belong to its
/// own services.
fn expect_left(db: &Database, own: fn(&Database) -> TestStore, other: fn(&Database) -> TestStore) {
    let register = |store: TestStore| {
        let can_have = |service: &ServiceId| service.as_str() == "c::d";
        ClaimStore::register_for(store.into_store(), ClaimOptions::default(), can_have)
    };
    own(db).add_all(&[writing(1, "aa"), writing(2, "bb")]);
    let claims = register(other(db)).unwrap();
    claims.take(10).unwrap();
    claims.release().unwrap();
    drop(claims);
    let claims = ClaimStore::register(own(db).into_store(), ClaimOptions::default()).unwrap();
    claims.take(10).unwrap();
    assert_eq!(number(&claims.take_next(&[service(SERVICE)]).unwrap()[0]), 1);
    drop(claims);

    own(db).add_all(&[accessing("c::d", 3, &[], &["aa"])]);
    let refused = register(other(db)).unwrap_err();
    assert!(matches!(refused, StoreError::OtherScheduling { .. }), "{refused}");
}
