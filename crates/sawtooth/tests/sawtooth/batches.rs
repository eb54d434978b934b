//! Batches, their ids, and the nodes to query about them.

use std::sync::Arc;

use grid_batch_core::ServiceId;
use grid_batch_core::batches::BatchState;
use grid_batch_core::evidence::UnresolvedBatch;
use grid_batch_core::ledger::{AttemptId, Submission};
use grid_batch_nodes::StatusUrlResolver;
use grid_batch_protocol::{
    Batch, BatchBuilder, Message, SigningKey, Transaction, TransactionBuilder,
};
use grid_batch_sawtooth::{Sawtooth, SawtoothOptions};

pub const SERVICE: &str = "global";

/// A batch of one transaction. Each number gives a different batch.
pub fn batch(number: u32) -> Batch {
    batch_of(&[number])
}

/// A batch of the transactions of these batches.
pub fn batch_of(numbers: &[u32]) -> Batch {
    let add = |builder: BatchBuilder, number: &u32| builder.transaction(transaction(*number));
    numbers.iter().fold(BatchBuilder::new(), add).sign(&SigningKey::from_seed(1))
}

fn transaction(number: u32) -> Transaction {
    let key = SigningKey::from_seed(1);
    TransactionBuilder::new("intkey", "1.0")
        .inputs(["1cf126"])
        .outputs(["1cf126"])
        .nonce(number.to_string())
        .payload(format!("set a to {number}"))
        .sign(&key, &key.public_key())
}

pub fn submission(batch: &Batch) -> Submission<ServiceId> {
    Submission::new(batch.header_signature.clone(), SERVICE.parse().unwrap(), batch.encode_to_vec())
}

/// A well-formed id that belongs to no batch.
pub fn id(number: usize) -> String {
    format!("{number:064x}").repeat(2)
}

/// An unresolved batch with this id.
pub fn unresolved(id: &str) -> UnresolvedBatch {
    let attempt_id = AttemptId { attempt: 1, epoch: 1 };
    let (service_id, id) = (SERVICE.parse().unwrap(), id.parse().unwrap());
    UnresolvedBatch::new(service_id, id, attempt_id, BatchState::InDoubt)
}

pub fn sawtooth() -> Sawtooth {
    Sawtooth::new(SawtoothOptions::default(), Nodes::none()).unwrap()
}

/// A resolver that returns these nodes for every batch.
#[derive(Debug)]
pub struct Nodes(Vec<String>);

impl Nodes {
    pub fn none() -> Arc<Self> {
        Arc::new(Self(Vec::new()))
    }

    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Arc<Self> {
        Arc::new(Self(urls.into_iter().map(Into::into).collect()))
    }
}

impl StatusUrlResolver for Nodes {
    fn status_urls(&self, _: &str, _: &str) -> Vec<String> {
        self.0.clone()
    }
}
