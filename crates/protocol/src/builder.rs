use grid_batch_core::ItemId;
use prost::Message;

use crate::{
    Batch, BatchHeader, PublicKey, SigningKey, Transaction, TransactionHeader, verify::sha512,
};

/// Builds a signed [`Transaction`].
///
/// Signing is deterministic: the same content and nonce make the same transaction.
///
/// ```
/// use grid_batch_protocol::{SigningKey, TransactionBuilder};
///
/// let key = SigningKey::from_seed(1);
/// let set = |nonce| {
///     TransactionBuilder::new("intkey", "1.0")
///         .outputs(["1cf126"])
///         .payload(b"set a to 1")
///         .nonce(nonce)
///         .sign(&key, &key.public_key())
/// };
/// assert_eq!(set("1"), set("1"));
/// assert_ne!(set("1").header_signature, set("2").header_signature);
/// ```
#[derive(Debug, Clone, Default)]
pub struct TransactionBuilder {
    header: TransactionHeader,
    payload: Vec<u8>,
}

impl TransactionBuilder {
    /// A transaction with this family and version; all other fields are empty.
    pub fn new(family_name: impl Into<String>, family_version: impl Into<String>) -> Self {
        let header = TransactionHeader {
            family_name: family_name.into(),
            family_version: family_version.into(),
            ..TransactionHeader::default()
        };
        Self { header, payload: Vec::new() }
    }

    /// Sets the addresses that the transaction may read.
    #[must_use]
    pub fn inputs(mut self, addresses: impl IntoIterator<Item: Into<String>>) -> Self {
        self.header.inputs = addresses.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the addresses that the transaction may write.
    #[must_use]
    pub fn outputs(mut self, addresses: impl IntoIterator<Item: Into<String>>) -> Self {
        self.header.outputs = addresses.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the transactions that must be applied before this one.
    #[must_use]
    pub fn dependencies(mut self, ids: impl IntoIterator<Item = ItemId>) -> Self {
        self.header.dependencies = ids.into_iter().map(|id| id.to_string()).collect();
        self
    }

    /// Sets the nonce, which distinguishes transactions with the same content.
    #[must_use]
    pub fn nonce(mut self, nonce: impl Into<String>) -> Self {
        self.header.nonce = nonce.into();
        self
    }

    /// Sets the payload for the transaction family.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Vec<u8>>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Signs the transaction for a batch that `batcher` signs.
    pub fn sign(self, signer: &SigningKey, batcher: &PublicKey) -> Transaction {
        let header = TransactionHeader {
            batcher_public_key: batcher.to_string(),
            payload_sha512: sha512(&self.payload),
            signer_public_key: signer.public_key().to_string(),
            ..self.header
        }
        .encode_to_vec();
        Transaction {
            header_signature: sign_header(&header, signer),
            header,
            payload: self.payload,
        }
    }
}

/// Builds a signed [`Batch`].
///
/// ```
/// use grid_batch_protocol::{BatchBuilder, SigningKey, TransactionBuilder};
///
/// let [alice, batcher] = [1, 2].map(SigningKey::from_seed);
/// let transaction = TransactionBuilder::new("intkey", "1.0").sign(&alice, &batcher.public_key());
/// let batch = BatchBuilder::new().transaction(transaction).sign(&batcher);
/// assert_eq!(batch.transactions.len(), 1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct BatchBuilder {
    transactions: Vec<Transaction>,
    trace: bool,
}

impl BatchBuilder {
    /// A batch without transactions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a transaction.
    #[must_use]
    pub fn transaction(mut self, transaction: Transaction) -> Self {
        self.transactions.push(transaction);
        self
    }

    /// Appends transactions.
    #[must_use]
    pub fn transactions(mut self, transactions: impl IntoIterator<Item = Transaction>) -> Self {
        self.transactions.extend(transactions);
        self
    }

    /// Sets whether the ledger logs more about the batch.
    #[must_use]
    pub fn trace(mut self, trace: bool) -> Self {
        self.trace = trace;
        self
    }

    /// Signs the batch. It does not verify the transactions.
    pub fn sign(self, batcher: &SigningKey) -> Batch {
        let ids = self.transactions.iter().map(|t| t.header_signature.clone());
        let header = BatchHeader {
            signer_public_key: batcher.public_key().to_string(),
            transaction_ids: ids.collect(),
        }
        .encode_to_vec();
        Batch {
            header_signature: sign_header(&header, batcher),
            header,
            transactions: self.transactions,
            trace: self.trace,
        }
    }
}

fn sign_header(header: &[u8], key: &SigningKey) -> String {
    ItemId::from_bytes(key.sign(header)).to_string()
}
