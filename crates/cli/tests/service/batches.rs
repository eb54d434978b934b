use grid_batch_core::{HeaderId, ServiceId};
use grid_batch_protocol::{
    Batch, BatchBuilder, BatchList, Message, SigningKey, TransactionBuilder,
};

/// A batch for a service, as a client makes it.
#[derive(Clone)]
pub struct Made {
    pub service_id: ServiceId,
    pub batch_id: HeaderId,
    batch: Batch,
}

/// The batch of this number for a service: the same number makes the same batch.
pub fn batch(service: &str, number: usize) -> Made {
    let key = SigningKey::from_seed(7);
    let transaction = TransactionBuilder::new("test", "1.0")
        .inputs(["7e57"])
        .outputs(["7e57"])
        .nonce(format!("{service}/{number}"))
        .payload(format!("set {service} to {number}"))
        .sign(&key, &key.public_key());
    let batch = BatchBuilder::new().transaction(transaction).sign(&key);
    let batch_id = batch.header_signature.parse().unwrap();
    Made { service_id: service.parse().unwrap(), batch_id, batch }
}

/// So many batches for each service, dealt out in turn.
pub fn batches(services: &[String], each: usize) -> Vec<Made> {
    let of_turn = |number| services.iter().map(move |service| batch(service, number));
    (0..each).flat_map(of_turn).collect()
}

/// The bytes of a list of these.
pub fn list(batches: &[Made]) -> Vec<u8> {
    BatchList { batches: batches.iter().map(|made| made.batch.clone()).collect() }.encode_to_vec()
}

/// What the ledger's record is compared with.
pub fn promised(batches: &[Made]) -> Vec<(ServiceId, HeaderId)> {
    batches.iter().map(|made| (made.service_id.clone(), made.batch_id)).collect()
}
