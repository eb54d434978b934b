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
