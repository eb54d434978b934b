/// What a client sends and a ledger takes: batches.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BatchList {
    /// The batches, in the order they are to be applied.
    #[prost(message, repeated, tag = "1")]
    pub batches: Vec<Batch>,
}

/// Transactions that are applied together or not at all.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Batch {
    /// The signed bytes: a [`BatchHeader`], to be decoded but never encoded anew.
    #[prost(bytes = "vec", tag = "1")]
    pub header: Vec<u8>,
    /// The signature of `header` in hex, and so the batch's id.
    #[prost(string, tag = "2")]
    pub header_signature: String,
    /// The transactions, in the order they are applied.
    #[prost(message, repeated, tag = "3")]
    pub transactions: Vec<Transaction>,
    /// Whether the ledger is to log more about this batch. Nobody signs for it.
    #[prost(bool, tag = "4")]
    pub trace: bool,
}

/// What the batcher signs.
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
    /// The signed bytes: a [`TransactionHeader`], to be decoded but never encoded anew.
    #[prost(bytes = "vec", tag = "1")]
    pub header: Vec<u8>,
    /// The signature of `header` in hex, and so the transaction's id.
    #[prost(string, tag = "2")]
    pub header_signature: String,
    /// What the transaction family reads; the header has its hash.
    #[prost(bytes = "vec", tag = "3")]
    pub payload: Vec<u8>,
}

/// What the signer of a transaction signs.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TransactionHeader {
    /// The public key in hex of whoever is to sign the batch.
    #[prost(string, tag = "1")]
    pub batcher_public_key: String,
    /// The ids of transactions that must be applied before.
    #[prost(string, repeated, tag = "2")]
    pub dependencies: Vec<String>,
    /// The transaction family: which processor or contract reads the payload.
    #[prost(string, tag = "3")]
    pub family_name: String,
    /// The family's version.
    #[prost(string, tag = "4")]
    pub family_version: String,
    /// The addresses that may be read; the beginning of an address stands for all that share it.
    #[prost(string, repeated, tag = "5")]
    pub inputs: Vec<String>,
    /// Any text that makes this transaction unlike another of the same content.
    #[prost(string, tag = "6")]
    pub nonce: String,
    /// The addresses that may be written; the beginning of an address stands for all that share it.
    #[prost(string, repeated, tag = "7")]
    pub outputs: Vec<String>,
    /// The payload's SHA-512 in hex.
    #[prost(string, tag = "9")]
    pub payload_sha512: String,
    /// The signer's public key in hex.
    #[prost(string, tag = "10")]
    pub signer_public_key: String,
}
