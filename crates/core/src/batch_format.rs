use thiserror::Error;

use crate::{ItemId, ItemIdError, NewBatch, ServiceId};

/// Turns the bytes of a request into batches.
///
/// A format may keep the payload opaque: without a signer, without declared access, so that a batch conflicts with
/// every other one of its service. It must give each batch an id that no other batch of its ledger has.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait BatchFormat: Send + Sync {
    /// The batches in these bytes, in order and verified as far as the format allows, to be stored for a service.
    /// The label, the client and what the client declares are not part of the bytes; intake adds them.
    ///
    /// It may need some time for each batch, and does no I/O. One invalid batch refuses all of them.
    fn read(&self, service_id: &ServiceId, bytes: &[u8]) -> Result<Vec<NewBatch>, FormatError>;

    /// The id of a batch of this format, from what a client sends.
    fn parse_id(&self, text: &str) -> Result<ItemId, FormatError> {
        text.parse().map_err(|error: ItemIdError| FormatError::Id(error.to_string()))
    }
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
