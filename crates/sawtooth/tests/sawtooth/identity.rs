//! Which ledger a node belongs to.

use grid_batch_core::BatchError;
use grid_batch_core::ledger::Ledger;
use grid_batch_ledger_sim::{LedgerSim, LedgerSimBuilder};

use crate::batches::sawtooth;

async fn id_of(ledger: LedgerSimBuilder) -> String {
    let ledger = ledger.start().unwrap();
    read_id(&ledger.url()).await.unwrap()
}

async fn read_id(url: &str) -> Result<String, BatchError> {
    sawtooth().identity(url).await
}

#[tokio::test]
async fn each_ledger_has_its_own_genesis_block() {
    let [one, other] =
        [id_of(LedgerSim::sawtooth().seed(1)).await, id_of(LedgerSim::sawtooth().seed(2)).await];
    assert!(one.starts_with("genesis block "), "{one}");
    assert_ne!(one, other);
}

#[tokio::test]
async fn restarted_ledger_keeps_its_genesis_block() {
    let ledger = LedgerSim::sawtooth().start().unwrap();
    let before = read_id(&ledger.url()).await.unwrap();
    ledger.restart();
    assert_eq!(read_id(&ledger.url()).await.unwrap(), before);
}

#[tokio::test]
async fn node_of_another_kind_has_no_identity() {
    let scabbard = LedgerSim::scabbard(["a::b".parse().unwrap()]).start().unwrap();
    let error = read_id(&scabbard.url()).await.unwrap_err();
    assert!(matches!(error, BatchError::InvalidAnswer(_)), "{error}");
}
