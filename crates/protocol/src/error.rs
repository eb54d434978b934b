use std::fmt;

use grid_batch_core::{Excerpt, HeaderIdError};
use thiserror::Error;

use crate::{PublicKeyError, SignatureError};

/// Why a list of batches is refused, all of it: nothing of a list is taken when a part is wrong.
///
/// The message is whole: it names the batch, the transaction and the rule, and no `source` stands
/// behind it to be printed again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ListError {
    /// The body is not a list of batches at all.
    #[error("the body is not a list of batches: {0}")]
    Undecodable(DecodeError),
    /// There is nothing in the list.
    #[error("the list has no batches; send at least one")]
    Empty,
    /// [`Limits::batches`](crate::Limits::batches) is exceeded: send it in parts.
    #[error("the list has more than {limit} batches; send it in parts")]
    TooManyBatches {
        /// The most that are allowed.
        limit: usize,
    },
    /// [`Limits::transactions`](crate::Limits::transactions) is exceeded: send it in parts.
    #[error("the list has more than {limit} transactions, counted up to {place}; send it in parts")]
    TooManyTransactions {
        /// The batch that has one too many.
        place: BatchPlace,
        /// The most that are allowed.
        limit: usize,
    },
    /// One batch breaks a rule.
    #[error("{place}: {fault}")]
    Batch {
        /// Which batch.
        place: BatchPlace,
        /// What is wrong with it.
        fault: Box<BatchFault>,
    },
}

/// Which batch of a list an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchPlace {
    /// Its place in the list, counted from 0.
    pub position: usize,
    /// The beginning of its id, where there is one to be read.
    pub id: Option<Excerpt>,
}

impl fmt::Display for BatchPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the batch at position {}", self.position)?;
        match &self.id {
            Some(id) => write!(f, ", {id}"),
            None => Ok(()),
        }
    }
}

/// What is wrong with a batch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchFault {
    /// Its bytes are not a batch.
    #[error("it cannot be decoded: {0}")]
    Undecodable(DecodeError),
    /// Its header signature is not an id.
    #[error("its header signature is not an id: {0}")]
    Id(HeaderIdError),
    /// The same batch is in the list before.
    #[error("it is in the list before, at position {first}; send it once")]
    Duplicate {
        /// Where it is first, counted from 0.
        first: usize,
    },
    /// Its header is not a batch header.
    #[error("its header cannot be decoded: {0}")]
    Header(DecodeError),
    /// The key in its header is not a key.
    #[error("its signer: {0}")]
    Signer(PublicKeyError),
    /// Its header is not signed by the key that the header names.
    #[error("its header: {0}")]
    Signature(SignatureError),
    /// Nothing would be applied, and nothing could ever prove that it was.
    #[error("it has no transactions")]
    NoTransactions,
    /// The header lists more or fewer transactions than there are.
    #[error("its header lists {listed} transactions, and it has {present}")]
    TransactionCount {
        /// How many the header lists.
        listed: usize,
        /// How many there are.
        present: usize,
    },
    /// The header lists another transaction than the one that is there.
    #[error("its header lists the transaction {listed} at position {position}, where {present} is")]
    TransactionOrder {
        /// The first place where they differ, counted from 0.
        position: usize,
        /// The beginning of the id that the header lists.
        listed: Excerpt,
        /// The beginning of the id of the transaction that is there.
        present: Excerpt,
    },
    /// One of its transactions breaks a rule.
    #[error("its transaction at position {position}, {id}: {fault}")]
    Transaction {
        /// Which transaction, counted from 0.
        position: usize,
        /// The beginning of its id.
        id: Excerpt,
        /// What is wrong with it.
        fault: TransactionFault,
    },
}

/// What is wrong with a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TransactionFault {
    /// Its header signature is not an id.
    #[error("its header signature is not an id: {0}")]
    Id(HeaderIdError),
    /// The same transaction is in the batch before: a ledger would apply it twice, or choke on it.
    #[error("it is in the batch before, at position {first}")]
    Duplicate {
        /// Where it is first, counted from 0.
        first: usize,
    },
    /// Its header is not a transaction header.
    #[error("its header cannot be decoded: {0}")]
    Header(DecodeError),
    /// The key in its header is not a key.
    #[error("its signer: {0}")]
    Signer(PublicKeyError),
    /// Its header is not signed by the key that the header names.
    #[error("its header: {0}")]
    Signature(SignatureError),
    /// It was made to be batched by another key than the one that signed the batch.
    #[error("its header names the batcher {named}, and the batch is signed by {signer}")]
    Batcher {
        /// The beginning of the key that the transaction's header names.
        named: Excerpt,
        /// The beginning of the key that the batch's header names.
        signer: Excerpt,
    },
    /// Its payload is not the one that was signed for.
    #[error("its payload has not the SHA-512 that its header names")]
    Payload,
    /// It depends on something that cannot be a transaction, and so could never be applied.
    #[error("its dependency at position {position} is not an id: {error}")]
    Dependency {
        /// Which dependency, counted from 0.
        position: usize,
        /// Why it is not an id.
        error: HeaderIdError,
    },
}

/// Why bytes are not a message of the kind that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// There are fewer bytes than they themselves say.
    #[error("the bytes end in the middle of a field")]
    Truncated,
    /// A field is not of the kind that belongs there.
    #[error("field {number} is of a kind that does not belong there")]
    Field {
        /// The field's number.
        number: usize,
    },
    /// Something else, in the words of the decoder.
    #[error(transparent)]
    Message(#[from] prost::DecodeError),
}
