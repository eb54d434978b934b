use grid_batch_core::ItemId;
use grid_batch_protocol::{
    Batch, BatchBuilder, BatchList, Message, SigningKey, Transaction, TransactionBuilder,
};

/// A batch of one transaction; each number makes another batch.
pub fn batch(number: u32) -> Batch {
    depending_on(number, [])
}

pub fn depending_on(number: u32, ids: impl IntoIterator<Item = ItemId>) -> Batch {
    BatchBuilder::new().transaction(transaction(number, ids)).sign(&key())
}

/// A batch of the transactions of these batches.
pub fn batch_of(numbers: &[u32]) -> Batch {
    let add = |builder: BatchBuilder, number: &u32| builder.transaction(transaction(*number, []));
    numbers.iter().fold(BatchBuilder::new(), add).sign(&key())
}

fn transaction(number: u32, dependencies: impl IntoIterator<Item = ItemId>) -> Transaction {
    let key = key();
    TransactionBuilder::new("intkey", "1.0")
        .inputs(["1cf126"])
        .outputs(["1cf126"])
        .dependencies(dependencies)
        .nonce(number.to_string())
        .payload(format!("set a to {number}"))
        .sign(&key, &key.public_key())
}

pub fn key() -> SigningKey {
    SigningKey::from_seed(1)
}

pub fn list(batches: &[Batch]) -> Vec<u8> {
    BatchList { batches: batches.to_vec() }.encode_to_vec()
}

pub fn id(batch: &Batch) -> ItemId {
    batch.header_signature.parse().unwrap()
}

pub fn transaction_id(batch: &Batch) -> ItemId {
    batch.transactions[0].header_signature.parse().unwrap()
}

/// The id of a batch that was never sent.
pub fn unknown() -> ItemId {
    ItemId::from_bytes([0xee; 64])
}

/// Batches that are invalid in different ways.
pub fn corrupt() -> [Batch; 3] {
    let [mut signature, mut payload, mut transaction] = [0; 3].map(batch);
    signature.header_signature = batch(1).header_signature;
    payload.transactions[0].payload.push(0);
    transaction.transactions[0].header_signature =
        batch(1).transactions[0].header_signature.clone();
    [signature, payload, transaction]
}
