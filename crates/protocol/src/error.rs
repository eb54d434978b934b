use std::fmt;

use grid_batch_core::Excerpt;
use thiserror::Error;

use crate::{HeaderIdError, PublicKeyError, SignatureError};

/// Why a list of batches is refused. One invalid part refuses the whole list.
///
/// The message is complete: it names the batch, the transaction and the rule. There is no `source`
/// that repeats a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ListError {
    /// The body is not a list of batches.
    #[error("the body is not a list of batches: {0}")]
    Undecodable(DecodeError),
    /// The list has no batches.
    #[error("the list has no batches; send at least one")]
    Empty,
    /// [`Limits::batches`](crate::Limits::batches) is exceeded.
    #[error("the list has more than {limit} batches; send it in parts")]
    TooManyBatches {
        /// The limit.
        limit: usize,
    },
    /// [`Limits::transactions`](crate::Limits::transactions) is exceeded.
    #[error("the list has more than {limit} transactions, up to {location}; send it in parts")]
    TooManyTransactions {
        /// The batch that exceeds the limit.
        location: BatchLocation,
        /// The limit.
        limit: usize,
    },
    /// A batch violates a rule.
    #[error("{location}: {fault}")]
    Batch {
        /// Which batch.
        location: BatchLocation,
        /// The violated rule.
        fault: Box<BatchFault>,
    },
}

/// The batch of a list that an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchLocation {
    /// Its position in the list, counted from 0.
    pub position: usize,
    /// The beginning of its id, if it can be decoded.
    pub id: Option<Excerpt>,
}

impl fmt::Display for BatchLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the batch at position {}", self.position)?;
        match &self.id {
            Some(id) => write!(f, ", {id}"),
            None => Ok(()),
        }
    }
}

/// The rule that a batch violates.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchFault {
    /// The bytes are not a batch.
    #[error("it cannot be decoded: {0}")]
    Undecodable(DecodeError),
    /// The header signature is not an id.
    #[error("its header signature is not an id: {0}")]
    Id(HeaderIdError),
    /// The list contains the batch twice.
    #[error("it is also at position {first} of the list; send it once")]
    Duplicate {
        /// The first position, counted from 0.
        first: usize,
    },
    /// The header is not a batch header.
    #[error("its header cannot be decoded: {0}")]
    Header(DecodeError),
    /// The signer in the header is not a key.
    #[error("its signer: {0}")]
    Signer(PublicKeyError),
    /// The header is not signed by the signer that it names.
    #[error("its header: {0}")]
    Signature(SignatureError),
    /// The batch has no transactions, so there could never be evidence that it was applied.
    #[error("it has no transactions")]
    NoTransactions,
    /// The header lists another number of transactions than the batch has.
    #[error("its header lists {listed} transactions, but it has {present}")]
    TransactionCount {
        /// The number in the header.
        listed: usize,
        /// The number in the batch.
        present: usize,
    },
    /// The header lists another transaction than the batch has at this position.
    #[error("its header lists transaction {listed} at position {position}, but it has {present}")]
    TransactionOrder {
        /// The first position where they differ, counted from 0.
        position: usize,
        /// The beginning of the id in the header.
        listed: Excerpt,
        /// The beginning of the id of the transaction in the batch.
        present: Excerpt,
    },
    /// A transaction violates a rule.
    #[error("its transaction at position {position}, {id}: {fault}")]
    Transaction {
        /// The position of the transaction, counted from 0.
        position: usize,
        /// The beginning of its id.
        id: Excerpt,
        /// The violated rule.
        fault: TransactionFault,
    },
}

/// The rule that a transaction violates.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TransactionFault {
    /// The header signature is not an id.
    #[error("its header signature is not an id: {0}")]
    Id(HeaderIdError),
    /// The batch contains the transaction twice; a ledger could apply it twice.
    #[error("it is also at position {first} of the batch")]
    Duplicate {
        /// The first position, counted from 0.
        first: usize,
    },
    /// The header is not a transaction header.
    #[error("its header cannot be decoded: {0}")]
    Header(DecodeError),
    /// The signer in the header is not a key.
    #[error("its signer: {0}")]
    Signer(PublicKeyError),
    /// The header is not signed by the signer that it names.
    #[error("its header: {0}")]
    Signature(SignatureError),
    /// The header names another batcher than the signer of the batch.
    #[error("its header names batcher {named}, but the batch is signed by {signer}")]
    Batcher {
        /// The beginning of the key in the header of the transaction.
        named: Excerpt,
        /// The beginning of the key in the header of the batch.
        signer: Excerpt,
    },
    /// The payload does not have the signed hash.
    #[error("the SHA-512 of its payload is not the one in its header")]
    Payload,
    /// A dependency is not a transaction id, so the transaction could never be applied.
    #[error("its dependency at position {position} is not an id: {error}")]
    Dependency {
        /// The position of the dependency, counted from 0.
        position: usize,
        /// The reason.
        error: HeaderIdError,
    },
}

/// Why bytes are not a message of the expected type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are shorter than a length in them.
    #[error("the bytes end in the middle of a field")]
    Truncated,
    /// A field has an unexpected wire type or number.
    #[error("field {number} has an unexpected wire type or number")]
    Field {
        /// The field's number.
        number: usize,
    },
    /// Another error of the decoder.
    #[error(transparent)]
    Message(#[from] prost::DecodeError),
}
