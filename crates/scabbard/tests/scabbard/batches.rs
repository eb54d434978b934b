use grid_batch_core::ledger::{AttemptId, Submission};
use grid_batch_core::{ItemId, ServiceId, ServiceScopeId};
use grid_batch_protocol::{
    Batch, BatchBuilder, CylinderToken, Message, SigningKey, TransactionBuilder,
};

pub const SERVICE: &str = "abcDE-F0123::gsAA";

pub fn key() -> SigningKey {
    SigningKey::from_seed(1)
}

pub fn token() -> CylinderToken {
    CylinderToken::new(&key())
}

pub fn scope() -> ServiceScopeId {
    SERVICE.parse().unwrap()
}

pub fn service() -> ServiceId {
    SERVICE.parse().unwrap()
}

/// A batch of one transaction. Each number gives a different batch.
pub fn batch(number: u32) -> Batch {
    let transaction = TransactionBuilder::new("intkey", "1.0")
        .nonce(number.to_string())
        .payload(format!("set a to {number}"))
        .sign(&key(), &key().public_key());
    BatchBuilder::new().transaction(transaction).sign(&key())
}

pub fn id(number: u32) -> String {
    batch(number).header_signature
}

pub fn transaction_id(number: u32) -> String {
    batch(number).transactions[0].header_signature.clone()
}

/// A well-formed id that belongs to no batch.
pub fn arbitrary_id(number: u8) -> String {
    ItemId::from_bytes([number; 64]).to_string()
}

/// The submission of a batch for this attempt.
pub fn submission(number: u32, attempt: u32) -> Submission<ServiceId> {
    uncounted_submission(number).with_attempt_id(AttemptId { attempt, epoch: 1 })
}

/// A submission without an attempt id.
pub fn uncounted_submission(number: u32) -> Submission<ServiceId> {
    Submission::new(id(number), service(), batch(number).encode_to_vec())
}
