use grid_batch_core::ItemId;
use prost::Message;

use crate::{BatchHeader, fields::fields};

const HEADER: usize = 1;

/// The ids of the transactions that the header of a batch lists, in order, without verifying anything.
/// `None` if these are not the bytes of a batch.
///
/// ```
/// use grid_batch_protocol::{BatchBuilder, Message, SigningKey, TransactionBuilder, transaction_ids};
///
/// let key = SigningKey::from_seed(1);
/// let transaction = TransactionBuilder::new("intkey", "1.0").sign(&key, &key.public_key());
/// let id = transaction.header_signature.parse()?;
/// let batch = BatchBuilder::new().transaction(transaction).sign(&key);
/// assert_eq!(transaction_ids(&batch.encode_to_vec()), Some(vec![id]));
/// assert_eq!(transaction_ids(b"bytes"), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn transaction_ids(batch: &[u8]) -> Option<Vec<ItemId>> {
    let header = fields(batch, HEADER).collect::<Result<Vec<_>, _>>().ok()?.pop()?;
    let header = BatchHeader::decode(header).ok()?;
    header
        .transaction_ids
        .iter()
        .map(|id| Some(id.parse::<crate::HeaderId>().ok()?.into()))
        .collect()
}
