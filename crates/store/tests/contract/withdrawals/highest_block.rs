use grid_batch_core::ledger::LedgerIdentity;
use grid_batch_withdrawals::SigningStore;

use crate::fixture::{Database, by_program, on_both};

on_both! {
    highest_block_is_kept_for_the_ledger,
    database_without_a_ledger_keeps_no_block,
}

fn highest_block_is_kept_for_the_ledger(db: &Database) {
    let instance = db.instance();
    let store = instance.store();
    let ledger = LedgerIdentity::new("evm");
    instance.confirm_ledger(&ledger).unwrap();
    assert_eq!(store.highest_block().unwrap(), None);
    for (recorded, highest) in [(7, 7), (5, 7), (9, 9)] {
        store.record_highest_block(recorded).unwrap();
        assert_eq!(db.open().highest_block().unwrap(), Some(highest));
    }
    db.execute("delete from instances").unwrap();
    store.rebind_ledger(&ledger, &by_program()).unwrap();
    assert_eq!(store.highest_block().unwrap(), None);
}

fn database_without_a_ledger_keeps_no_block(db: &Database) {
    let store = db.open();
    store.record_highest_block(7).unwrap();
    assert_eq!(store.highest_block().unwrap(), None);
}
