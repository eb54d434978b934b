//! The Sawtooth adapter alone: sends a batch to a node that is busy at first, reads its status until it is committed, and
//! asks for evidence about it and about a batch that was never sent.

use std::{error::Error, sync::Arc, time::Duration};

use grid_batch_core::batches::{BatchState, LedgerStatus, NewBatch};
use grid_batch_core::evidence::{Evidence, UnresolvedBatch};
use grid_batch_core::ledger::{AttemptId, Ledger, Outcome, Submission};
use grid_batch_core::polling::BatchStatus;
use grid_batch_core::{BatchResult, GlobalScopeId, ItemId, ScopeId};
use grid_batch_ledger_sim::{Fault, LedgerSim, When};
use grid_batch_nodes::NodePool;
use grid_batch_protocol::{BatchBuilder, BatchList, Message, SigningKey, TransactionBuilder};
use grid_batch_sawtooth::{Sawtooth, SawtoothOptions};
use tokio::time::sleep;

const PAUSE: Duration = Duration::from_millis(50);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let node = LedgerSim::sawtooth()
        .pending_for(Duration::from_millis(200))
        .fault(Fault::Busy, When::Next(2))
        .start()?;
    let nodes = Arc::new(NodePool::new([node.url()]));
    let sawtooth = Sawtooth::new(SawtoothOptions::default(), nodes)?;
    println!("the first block of the ledger is {}", sawtooth.identity(&node.url()).await?);

    let service = GlobalScopeId.service_id();
    let batches = sawtooth.format().read(service, &signed_list())?;
    let [batch] = &batches[..] else { return Err("the list has one batch".into()) };
    assert_eq!(send(&sawtooth, &node.url(), batch).await, Outcome::Accepted);
    assert_eq!(follow(&sawtooth, batch).await?, LedgerStatus::Committed);

    let never_sent = ItemId::from_bytes([7; ItemId::BYTES]);
    for (id, expected) in [(batch.batch_id, Evidence::Committed), (never_sent, Evidence::Absent)] {
        let attempt = AttemptId { attempt: 1, epoch: 1 };
        let batch = UnresolvedBatch::new(service.clone(), id, attempt, BatchState::InDoubt);
        let evidence = sawtooth.find_evidence(&batch).await?.evidence;
        println!("evidence about {id:.8}: {evidence:?}");
        assert_eq!(evidence, expected);
    }

    let audit = node.audit(&[(service.clone(), batch.batch_id)]);
    println!("the ledger: {audit}");
    assert!(audit.is_clean());
    Ok(())
}

/// Sends a batch until the ledger certainly has it, or may have it. A `RetryQueue` of the submitter does this with
/// growing delays.
async fn send(ledger: &impl Ledger, node: &str, batch: &NewBatch) -> Outcome {
    let service = batch.service_id.clone();
    let bytes = batch.serialized_batch.clone();
    let submission = Submission::new(batch.batch_id.to_string(), service, bytes);
    loop {
        let answer = ledger.send(node, &submission).await;
        println!("{:.8} was sent: {}", submission.batch_header(), answer.outcome);
        if !answer.outcome.class().may_be_sent_again() {
            return answer.outcome;
        }
        sleep(PAUSE).await;
    }
}

/// Asks for the status of a batch until it is final.
async fn follow(ledger: &impl Ledger, batch: &NewBatch) -> BatchResult<LedgerStatus> {
    let ids = [batch.batch_id.to_string()];
    loop {
        let reports = ledger.statuses(batch.service_id.as_str(), &ids).await?;
        for report in &reports {
            println!("{:.8} is {:?}", report.batch_id, report.status);
            if report.is_final() {
                return Ok(report.status);
            }
        }
        sleep(PAUSE).await;
    }
}

fn signed_list() -> Vec<u8> {
    let key = SigningKey::from_seed(7);
    let transaction = TransactionBuilder::new("intkey", "1.0")
        .inputs(["1cf126"])
        .outputs(["1cf126"])
        .payload(b"inc a 1")
        .sign(&key, &key.public_key());
    let batch = BatchBuilder::new().transaction(transaction).sign(&key);
    BatchList { batches: vec![batch] }.encode_to_vec()
}
