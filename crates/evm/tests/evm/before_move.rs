//! The check of an account before withdrawals are moved from it.

use std::time::Duration;

use grid_batch_core::ledger::{Ledger, Outcome};
use tokio::{join, task::spawn_blocking};

use crate::harness::Harness;

#[tokio::test]
async fn server_that_signs_meanwhile_makes_nothing_uncertain() {
    let harness = Harness::new();
    let ids = ["1", "2"].map(|amount| harness.schedule(amount));
    let check = harness.evm.account_check();
    let service_id = harness.service_id();
    let first = ids[1].batch_id(1);
    let stop = harness.proxy.stop_before("eth_getTransactionCount", 1);
    let sending = async {
        let stop = spawn_blocking(|| {
            assert!(stop.wait(Duration::from_secs(60)));
            stop
        });
        let stop = stop.await.unwrap();
        let submission = harness.submission(ids[0]);
        let answer = harness.evm.send(harness.chain.url(), &submission).await;
        assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
        stop.release();
    };
    let (uncertainty, ()) = join!(check.uncertainty(&service_id, first, &[]), sending);
    assert_eq!(uncertainty.unwrap(), None);
}

#[tokio::test]
async fn pending_transaction_that_is_not_stored_is_uncertain() {
    let harness = Harness::new();
    let ids = ["1", "2"].map(|amount| harness.schedule(amount));
    let copy = harness.store.copy();
    harness.accept(ids[0]).await;
    harness.store.restore(&copy);
    let check = harness.evm.account_check();
    let uncertainty = check.uncertainty(&harness.service_id(), ids[1].batch_id(1), &[]).await;
    let uncertainty = uncertainty.unwrap().unwrap();
    assert!(uncertainty.contains("a pending transaction"), "{uncertainty}");
}
