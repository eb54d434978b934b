//! Which services get batches, and from which signers.

mod error;
mod signer_pattern;

use grid_batch_core::ServiceId;
use grid_batch_core::batches::SignerId;
use grid_batch_support::ServicePattern;

pub use signer_pattern::{SignerPattern, SignerPatternError};

use self::error::AllowListError;
use crate::http::ApiError;

/// The services and signers whose batches are accepted. An empty list accepts all.
#[derive(Debug, Default)]
pub(crate) struct AllowLists {
    pub(crate) services: Vec<ServicePattern>,
    pub(crate) signers: Vec<SignerPattern>,
}

impl AllowLists {
    pub(crate) fn check_service(&self, id: &ServiceId) -> Result<(), ApiError> {
        if self.services.is_empty() || self.services.iter().any(|allowed| allowed.matches(id)) {
            Ok(())
        } else {
            Err(AllowListError::ServiceNotAllowed { id: id.clone() }.into())
        }
    }

    /// `None`: the format does not tell who signed the batch.
    pub(crate) fn check_signer(&self, signer: Option<&SignerId>) -> Result<(), ApiError> {
        if self.signers.is_empty() {
            return Ok(());
        }
        let signer = signer.ok_or(AllowListError::NoSigner)?;
        if self.signers.iter().any(|allowed| allowed.matches(signer)) {
            Ok(())
        } else {
            Err(AllowListError::SignerNotAllowed(*signer).into())
        }
    }
}
