//! The view `batch_statuses` of the original specification, with one row for each batch.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::Outcome;

use crate::fixture::{Database, StoreExt, batch, on_both};

on_both! { view_has_the_status_of_each_batch }

fn view_has_the_status_of_each_batch(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2), batch("a::b", 3), batch("c::d", 4)]);
    store.commit_next("a::b");
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    db.later(5);
    store.status(&taken, LedgerStatus::Valid);

    let count = |condition: &str| {
        db.number(&format!("select count(*) as number from batch_statuses where {condition}"))
    };
    assert_eq!(count("true"), 4);
    assert_eq!(count("service_id = 'a::b'"), 3);
    assert_eq!(count("dlt_status = 'COMMITTED'"), 1);
    assert_eq!(count("dlt_status = 'VALID'"), 1);
    assert_eq!(count("dlt_status is null"), 2);
    let checked_at = db.now().as_micros();
    assert_eq!(count(&format!("dlt_status = 'VALID' and updated_at = {checked_at}")), 1);
    assert_eq!(count(&format!("updated_at < {checked_at}")), 3);
}
