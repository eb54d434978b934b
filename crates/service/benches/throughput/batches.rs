use grid_batch_protocol::{Batch, BatchBuilder, SigningKey, TransactionBuilder};

/// A batch of one small transaction. Each number makes another batch.
pub fn batch(number: usize) -> Batch {
    let key = SigningKey::from_seed(1);
    let transaction = TransactionBuilder::new("bench", "1.0")
        .inputs(["be"])
        .outputs(["be"])
        .nonce(number.to_string())
        .payload(vec![7; 100])
        .sign(&key, &key.public_key());
    BatchBuilder::new().transaction(transaction).sign(&key)
}

/// The service id with this number.
pub fn service(number: usize) -> String {
    format!("bench-{:05}::s{number:03}", 0)
}
