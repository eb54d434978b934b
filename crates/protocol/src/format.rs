use grid_batch_core::ServiceId;
use grid_batch_core::batches::{BatchFormat, FormatError, NewBatch};

use crate::{BatchFault, HeaderId, Limits, ListError, verify_list};

/// The format of Sawtooth and Scabbard: a `BatchList`, which [`verify_list`] verifies.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactFormat {
    /// The maximum size of one list.
    pub limits: Limits,
}

impl BatchFormat for TransactFormat {
    fn read(&self, service_id: &ServiceId, bytes: &[u8]) -> Result<Vec<NewBatch>, FormatError> {
        let verified = verify_list(bytes, &self.limits)?;
        Ok(verified.into_iter().map(|batch| batch.into_new_batch(service_id.clone())).collect())
    }

    fn parse_id(&self, text: &str) -> Result<grid_batch_core::ItemId, FormatError> {
        let id = text.parse::<HeaderId>();
        id.map(Into::into).map_err(|error| FormatError::Id(error.to_string()))
    }
}

impl From<ListError> for FormatError {
    fn from(error: ListError) -> Self {
        let message = error.to_string();
        match error {
            ListError::Undecodable(_) => Self::Undecodable(message),
            ListError::Empty => Self::Empty,
            ListError::TooManyBatches { .. } | ListError::TooManyTransactions { .. } => {
                Self::TooLong(message)
            }
            // Sawtooth decodes the batches together with their list.
            ListError::Batch { fault, .. } if matches!(*fault, BatchFault::Undecodable(_)) => {
                Self::Undecodable(message)
            }
            ListError::Batch { .. } => Self::Invalid(message),
        }
    }
}
