//! Invariants for any bytes, used by the property tests and the fuzz target.

use std::collections::HashSet;

use grid_batch_core::{ItemId, ServiceId};
use grid_batch_protocol::{
    Batch, BatchHeader, Limits, Message, VerifiedBatch, list_of_one, verify_list,
};

/// Bytes are refused with a short message, or accepted with consistent batches.
///
/// Returns the number of accepted batches.
pub fn check_invariants(body: &[u8]) -> usize {
    match verify_list(body, &Limits::default()) {
        Err(error) => {
            assert!(error.to_string().len() < 1_000, "the message is too long: {error}");
            0
        }
        Ok(batches) => {
            assert!(!batches.is_empty());
            let ids: HashSet<_> = batches.iter().map(VerifiedBatch::id).collect();
            assert_eq!(ids.len(), batches.len());
            batches.iter().for_each(|batch| check_batch(batch, body));
            batches.len()
        }
    }
}

fn check_batch(batch: &VerifiedBatch, body: &[u8]) {
    let bytes = batch.bytes();
    assert!(body.windows(bytes.len()).any(|part| part == bytes));

    let alone = verify_list(&list_of_one(bytes), &Limits::default());
    assert_eq!(alone.as_deref(), Ok(&[batch.clone()][..]));

    let message = Batch::decode(bytes).expect("it was decoded before");
    let header = BatchHeader::decode(&message.header[..]).expect("it was decoded before");
    let ids: Vec<_> = batch.transactions().iter().map(|t| t.id()).collect();
    let texts: Vec<_> = ids.iter().map(ItemId::to_string).collect();
    let present = message.transactions.iter().map(|t| &t.header_signature);
    assert!(present.eq(&texts));
    assert_eq!(header.transaction_ids, texts);
    assert_eq!(message.header_signature, batch.id().to_string());
    assert_eq!(header.signer_public_key, batch.signer().to_string());

    let service: ServiceId = "abcDE-F0123::gsAA".parse().expect("the service id is valid");
    let stored = batch.clone().into_new_batch(service);
    assert_eq!(stored.batch_id, batch.id());
    assert_eq!(stored.transaction_ids, ids);
    assert_eq!(stored.serialized_batch, bytes);
}
