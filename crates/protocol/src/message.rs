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
