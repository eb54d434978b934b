//! Signed batches, made as a client makes them.

use grid_batch_core::{ItemId, ServiceId};
use grid_batch_protocol::{
    Batch, BatchBuilder, BatchList, Message, SigningKey, Transaction, TransactionBuilder,
};

/// A signed batch and the service that it is for.
#[derive(Clone)]
pub struct SignedBatch {
    /// The service that orders the batch.
    pub service_id: ServiceId,
    /// The batch's header signature.
    pub batch_id: ItemId,
    batch: Batch,
}

impl SignedBatch {
    /// A batch for this service.
    pub fn new(service: &str, batch: Batch) -> Self {
        let batch_id = batch_id(&batch);
        Self { service_id: service.parse().unwrap(), batch_id, batch }
    }

    /// The signed message.
    pub fn message(&self) -> &Batch {
        &self.batch
    }

    /// The ids of its transactions, in order.
    pub fn transaction_ids(&self) -> Vec<ItemId> {
        let ids = self.batch.transactions.iter().map(|t| t.header_signature.parse().unwrap());
        ids.collect()
    }
}

/// A batch of one transaction, for tests that need no service. The same number always gives the same
/// batch.
pub fn numbered_batch(number: usize) -> Batch {
    sign_batch(&number.to_string(), &format!("set a to {number}"))
}

/// The batch with this number for a service. The same arguments always give the same batch.
pub fn signed_batch(service: &str, number: usize) -> SignedBatch {
    let batch = sign_batch(&format!("{service}/{number}"), &format!("set {service} to {number}"));
    SignedBatch::new(service, batch)
}

/// A batch for a service with the transactions of these numbers. Batches with a number in common have
/// that transaction in common.
pub fn batch_of_transactions(service: &str, numbers: &[usize]) -> SignedBatch {
    let builder = numbers.iter().fold(BatchBuilder::new(), |builder, number| {
        let (nonce, payload) =
            (format!("{service}/{number}"), format!("set {service} to {number}"));
        builder.transaction(sign_transaction(&nonce, &payload))
    });
    SignedBatch::new(service, builder.sign(&key()))
}

/// The batch with this number for a service, of one transaction that depends on these.
pub fn depending_batch(service: &str, number: usize, dependencies: &[ItemId]) -> SignedBatch {
    let transaction = TransactionBuilder::new("test", "1.0")
        .inputs(["7e57"])
        .outputs(["7e57"])
        .dependencies(dependencies.iter().copied())
        .nonce(format!("{service}/{number}"))
        .payload(format!("set {service} to {number}"))
        .sign(&key(), &key().public_key());
    let batch = BatchBuilder::new().transaction(transaction).sign(&key());
    let batch_id = batch_id(&batch);
    SignedBatch { service_id: service.parse().unwrap(), batch_id, batch }
}

/// The batch with this number for a service, with a payload of this many bytes.
pub fn large_batch(service: &str, number: usize, payload_length: usize) -> SignedBatch {
    let payload = "x".repeat(payload_length);
    SignedBatch::new(service, sign_batch(&format!("{service}/{number}"), &payload))
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

/// The id of a batch: its header signature.
pub fn batch_id(batch: &Batch) -> ItemId {
    batch.header_signature.parse().unwrap()
}

/// The ids of these batches with their services, as a ledger's audit takes them.
pub fn batch_ids(batches: &[SignedBatch]) -> Vec<(ServiceId, ItemId)> {
    batches.iter().map(|signed| (signed.service_id.clone(), signed.batch_id)).collect()
}

fn sign_batch(nonce: &str, payload: &str) -> Batch {
    BatchBuilder::new().transaction(sign_transaction(nonce, payload)).sign(&key())
}

fn sign_transaction(nonce: &str, payload: &str) -> Transaction {
    TransactionBuilder::new("test", "1.0")
        .inputs(["7e57"])
        .outputs(["7e57"])
        .nonce(nonce)
        .payload(payload)
        .sign(&key(), &key().public_key())
}

fn key() -> SigningKey {
    SigningKey::from_seed(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_alternate_between_services() {
        let services = ["gsAA::a", "gsAA::b"].map(str::to_owned);
        let expected = [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
            .map(|(service, number)| signed_batch(&format!("gsAA::{service}"), number));
        assert_eq!(batch_ids(&signed_batches(&services, 2)), batch_ids(&expected));
    }

    #[test]
    fn numbers_and_services_give_different_batches() {
        let ids = [
            batch_id(&numbered_batch(1)),
            batch_id(&numbered_batch(2)),
            signed_batch("gsAA::a", 1).batch_id,
            signed_batch("gsAA::b", 1).batch_id,
        ];
        for (index, id) in ids.iter().enumerate() {
            assert!(!ids[..index].contains(id));
        }
        assert_eq!(numbered_batch(1), numbered_batch(1));
    }

    #[test]
    fn batch_of_one_transaction_has_the_same_one() {
        let one = signed_batch("gsAA::a", 1);
        let [same, two] =
            [&[1][..], &[1, 2]].map(|numbers| batch_of_transactions("gsAA::a", numbers));
        assert_eq!(same.batch.transactions, one.batch.transactions);
        assert_eq!(two.batch.transactions[0], one.batch.transactions[0]);
        assert_ne!(two.batch.transactions[1], one.batch.transactions[0]);
    }
}
