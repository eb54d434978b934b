use prost::encode_length_delimiter;

/// A list of batches, as clients send it and ledgers accept it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BatchList {
    /// The batches, in the order in which they are applied.
    #[prost(message, repeated, tag = "1")]
    pub batches: Vec<Batch>,
}

/// Transactions that are applied together or not at all.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Batch {
    /// The signed bytes: a [`BatchHeader`], to be decoded but never encoded again.
    #[prost(bytes = "vec", tag = "1")]
    pub header: Vec<u8>,
    /// The signature of `header` in hex, which is the batch's id.
    #[prost(string, tag = "2")]
    pub header_signature: String,
    /// The transactions, in the order in which they are applied.
    #[prost(message, repeated, tag = "3")]
    pub transactions: Vec<Transaction>,
    /// Whether the ledger logs more about this batch. This field is not signed.
    #[prost(bool, tag = "4")]
    pub trace: bool,
}

/// The part of a batch that the batcher signs.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BatchHeader {
    /// The batcher's public key in hex.
    #[prost(string, tag = "1")]
    pub signer_public_key: String,
    /// The ids of the batch's transactions, in order.
    #[prost(string, repeated, tag = "2")]
    pub transaction_ids: Vec<String>,
}

/// One change to a ledger's state.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Transaction {
    /// The signed bytes: a [`TransactionHeader`], to be decoded but never encoded again.
    #[prost(bytes = "vec", tag = "1")]
    pub header: Vec<u8>,
    /// The signature of `header` in hex, which is the transaction's id.
    #[prost(string, tag = "2")]
    pub header_signature: String,
    /// The input of the transaction family; the header has its hash.
    #[prost(bytes = "vec", tag = "3")]
    pub payload: Vec<u8>,
}

/// The part of a transaction that its signer signs.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TransactionHeader {
    /// The public key in hex of the batcher.
    #[prost(string, tag = "1")]
    pub batcher_public_key: String,
    /// The ids of the transactions that must be applied before this one.
    #[prost(string, repeated, tag = "2")]
    pub dependencies: Vec<String>,
    /// The transaction family: the processor or contract that executes the payload.
    #[prost(string, tag = "3")]
    pub family_name: String,
    /// The family's version.
    #[prost(string, tag = "4")]
    pub family_version: String,
    /// The addresses that may be read. A prefix stands for all addresses that start with it.
    #[prost(string, repeated, tag = "5")]
    pub inputs: Vec<String>,
    /// Any text that distinguishes this transaction from others with the same content.
    #[prost(string, tag = "6")]
    pub nonce: String,
    /// The addresses that may be written. A prefix stands for all addresses that start with it.
    #[prost(string, repeated, tag = "7")]
    pub outputs: Vec<String>,
    /// The payload's SHA-512 in hex.
    #[prost(string, tag = "9")]
    pub payload_sha512: String,
    /// The signer's public key in hex.
    #[prost(string, tag = "10")]
    pub signer_public_key: String,
}

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
