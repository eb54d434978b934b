//! Signed batches, made as a client makes them.

use grid_batch_core::{HeaderId, ServiceId};
use grid_batch_protocol::{
    Batch, BatchBuilder, BatchList, Message, SigningKey, TransactionBuilder,
};

/// A signed batch with one transaction, and the service it is for.
#[derive(Clone)]
pub struct SignedBatch {
    /// The service that orders the batch.
    pub service_id: ServiceId,
    /// The batch's header signature.
    pub batch_id: HeaderId,
    batch: Batch,
}

/// The batch with this number for a service. The same arguments always give the same batch.
pub fn signed_batch(service: &str, number: usize) -> SignedBatch {
    let key = SigningKey::from_seed(7);
    let transaction = TransactionBuilder::new("test", "1.0")
        .inputs(["7e57"])
        .outputs(["7e57"])
        .nonce(format!("{service}/{number}"))
        .payload(format!("set {service} to {number}"))
        .sign(&key, &key.public_key());
    let batch = BatchBuilder::new().transaction(transaction).sign(&key);
    let batch_id = batch.header_signature.parse().unwrap();
    SignedBatch { service_id: service.parse().unwrap(), batch_id, batch }
}

/// `count` batches for each service: the first batch of every service, then the second, and so on.
pub fn signed_batches(services: &[String], count: usize) -> Vec<SignedBatch> {
    let batches_with_number =
        |number| services.iter().map(move |service| signed_batch(service, number));
    (0..count).flat_map(batches_with_number).collect()
}

/// The bytes of a `BatchList` with these batches.
pub fn encode_batch_list(batches: &[SignedBatch]) -> Vec<u8> {
    let batches = batches.iter().map(|signed| signed.batch.clone()).collect();
    BatchList { batches }.encode_to_vec()
}

/// The ids of these batches with their services, as a ledger's audit takes them.
pub fn batch_ids(batches: &[SignedBatch]) -> Vec<(ServiceId, HeaderId)> {
    batches.iter().map(|signed| (signed.service_id.clone(), signed.batch_id)).collect()
}
