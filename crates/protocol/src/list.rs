use prost::encode_length_delimiter;

/// Wraps the exact bytes of one `Batch` into those of a `BatchList`: what is sent to a ledger.
///
/// The batch is not encoded anew. It stands in the list byte for byte as it was received, and so
/// do the fields of it that we do not know.
///
/// ```
/// use grid_batch_protocol::{BatchBuilder, BatchList, Message, SigningKey, list_of_one};
///
/// let batch = BatchBuilder::new().sign(&SigningKey::from_seed(1));
/// let list = list_of_one(&batch.encode_to_vec());
/// assert_eq!(BatchList::decode(&list[..])?.batches, [batch]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn list_of_one(batch: &[u8]) -> Vec<u8> {
    const FIELD_1_WITH_LENGTH: u8 = 1 << 3 | 2;
    const LONGEST_LENGTH: usize = 10;
    let mut list = Vec::with_capacity(1 + LONGEST_LENGTH + batch.len());
    list.push(FIELD_1_WITH_LENGTH);
    encode_length_delimiter(batch.len(), &mut list).expect("a vector grows as needed");
    list.extend_from_slice(batch);
    list
}
