use thiserror::Error;

use crate::batches::NewBatch;
use crate::{ItemId, ItemIdError, ServiceId};

/// Turns the bytes of a request into batches.
///
/// A format may treat the payload as opaque. Batches then have no signer and no declared access, so each conflicts with
/// every other batch of its service. It must give each batch an id that no other batch of its ledger has.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait BatchFormat: Send + Sync {
    /// Reads the batches in these bytes, which are to be stored for a service, in order, and verifies them as far as
    /// the format allows. The label, the client and what the client declares are not part of the bytes; intake adds
    /// them.
    ///
    /// It may take some time for each batch, but does no I/O. If one batch is invalid, all of them are refused.
    fn read(&self, service_id: &ServiceId, bytes: &[u8]) -> Result<Vec<NewBatch>, FormatError>;

    /// Parses the id of a batch of this format, as a client sends it.
    fn parse_id(&self, text: &str) -> Result<ItemId, FormatError> {
        text.parse().map_err(|error: ItemIdError| FormatError::Id(error.to_string()))
    }

    /// What is in the bytes of a stored batch, for people who read it. `None`: the payload is opaque.
    fn content(&self, _batch: &[u8]) -> Option<BatchContent> {
        None
    }
}

/// What is in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchContent {
    /// The public key of its signer.
    pub signer: String,
    /// Its transactions, in order.
    pub transactions: Vec<TransactionContent>,
}

/// What is in a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionContent {
    /// Its id.
    pub id: String,
    /// The public key of its signer.
    pub signer: String,
    /// The family that executes the payload, and its version.
    pub family: String,
    /// The addresses that may be read.
    pub inputs: Vec<String>,
    /// The addresses that may be written.
    pub outputs: Vec<String>,
    /// The transactions that must be applied before.
    pub dependencies: Vec<String>,
    /// What distinguishes it from others with the same content.
    pub nonce: String,
    /// The input of the family.
    pub payload: Vec<u8>,
}

/// Why bytes are refused. Each message is complete: it names the batch and the rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes are not in the format.
    #[error("{0}")]
    Undecodable(String),
    /// There are no batches in them.
    #[error("the list has no batches; send at least one")]
    Empty,
    /// There are more batches or transactions than are accepted at once.
    #[error("{0}")]
    TooLong(String),
    /// No batch of the format has such an id.
    #[error("{0}")]
    Id(String),
    /// A batch violates a rule of the format.
    #[error("{0}")]
    Invalid(String),
}
