//! The Scabbard adapter alone: subscribes to the events of a service, sends it a batch once, and sees its commit in an
//! event, in the status and as evidence. The same attempt is not sent a second time, because Scabbard would apply it again.

use std::{error::Error, sync::Arc, time::Duration};

use futures_util::StreamExt;
use grid_batch_core::batches::{BatchState, LedgerStatus, NewBatch};
use grid_batch_core::evidence::{Evidence, UnresolvedBatch};
use grid_batch_core::ledger::{AttemptId, Ledger, Outcome, Submission};
use grid_batch_core::polling::BatchStatus;
use grid_batch_core::{BatchResult, ItemId, ScopeId, ServiceScopeId};
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_nodes::NodePool;
use grid_batch_protocol::{
    BatchBuilder, BatchList, CylinderToken, Message, SigningKey, TransactionBuilder,
};
use grid_batch_scabbard::{Scabbard, ScabbardOptions};
use tokio::time::sleep;

const ATTEMPT: AttemptId = AttemptId { attempt: 1, epoch: 1 };

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let scope: ServiceScopeId = "abcDE-F0123::gsAA".parse()?;
    let key = SigningKey::from_seed(7);
    let node = LedgerSim::scabbard([scope.clone()])
        .pending_for(Duration::from_millis(100))
        .allow_keys([key.public_key()])
        .start()?;
    let nodes = Arc::new(NodePool::new([node.url()]));
    let scabbard = Scabbard::new(&CylinderToken::new(&key), nodes, ScabbardOptions::default())?;
    assert!(scabbard.is_service_at(&node.url(), &scope).await?);

    let service = scope.service_id();
    let batches = scabbard.format().read(service, &signed_list(&key))?;
    let [batch] = &batches[..] else { return Err("the list has one batch".into()) };
    let mut events = scabbard.events(service.as_str()).await?;
    assert_eq!(send(&scabbard, &node.url(), batch).await, Outcome::Accepted);

    let event = events.next().await.ok_or("the events have ended")??;
    let transaction = event.transaction_id.ok_or("an event of Scabbard names a transaction")?;
    println!("an event says that {transaction:.8} was applied");
    assert_eq!(batch.transaction_ids, [transaction.parse::<ItemId>()?]);
    assert_eq!(follow(&scabbard, batch).await?, LedgerStatus::Committed);

    let unresolved = UnresolvedBatch {
        transaction_ids: batch.transaction_ids.clone(),
        ..UnresolvedBatch::new(service.clone(), batch.batch_id, ATTEMPT, BatchState::InDoubt)
    };
    assert_eq!(scabbard.find_evidence(&unresolved).await?.evidence, Evidence::Committed);
    println!("there is evidence that it was committed");
    assert_eq!(send(&scabbard, &node.url(), batch).await, Outcome::Ambiguous);
    assert_eq!(node.times_received(&batch.batch_id), 1);
    Ok(())
}

/// Sends a batch until the ledger certainly has it, or may have it.
async fn send(ledger: &impl Ledger, node: &str, batch: &NewBatch) -> Outcome {
    let service = batch.service_id.clone();
    let bytes = batch.serialized_batch.clone();
    let submission = Submission::new(batch.batch_id.to_string(), service, bytes);
    let submission = submission.with_attempt_id(ATTEMPT);
    loop {
        let answer = ledger.send(node, &submission).await;
        let reason = answer.message.unwrap_or_default();
        println!("{:.8}: {} {reason}", submission.batch_header(), answer.outcome);
        if !answer.outcome.class().may_be_sent_again() {
            return answer.outcome;
        }
        // The adapter waits for the replay of earlier events.
        sleep(answer.retry_after.unwrap_or(Duration::from_millis(100))).await;
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
        sleep(Duration::from_millis(50)).await;
    }
}

fn signed_list(key: &SigningKey) -> Vec<u8> {
    let transaction =
        TransactionBuilder::new("intkey", "1.0").payload(b"inc a 1").sign(key, &key.public_key());
    let batch = BatchBuilder::new().transaction(transaction).sign(key);
    BatchList { batches: vec![batch] }.encode_to_vec()
}
