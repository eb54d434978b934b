use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use tokio::runtime::Builder;

use crate::{
    batches::transaction_id,
    test_ledger::{TestLedger, next},
};

#[test]
fn adapter_is_usable_on_one_runtime_after_another() {
    let ledger = TestLedger::new();
    for number in 1..=3 {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let mut events = ledger.subscribe().await;
            assert_eq!(ledger.send(number).await, Outcome::Accepted);
            while next(&mut events).await != transaction_id(number) {}
            assert_eq!(ledger.status(number).await, LedgerStatus::Committed);
            assert_eq!(ledger.evidence(number).await, Evidence::Committed);
        });
    }
}
