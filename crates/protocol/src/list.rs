use prost::encode_length_delimiter;

/// Wraps the exact bytes of one `Batch` into a `BatchList`, which ledgers accept.
///
/// The batch is not encoded again: the list contains its bytes as they were received, with their
/// unknown fields.
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
    const FIELD_1_LENGTH_DELIMITED: u8 = 1 << 3 | 2;
    const MAX_LENGTH_BYTES: usize = 10;
    let mut list = Vec::with_capacity(1 + MAX_LENGTH_BYTES + batch.len());
    list.push(FIELD_1_LENGTH_DELIMITED);
    encode_length_delimiter(batch.len(), &mut list).expect("a vector grows as needed");
    list.extend_from_slice(batch);
    list
}
