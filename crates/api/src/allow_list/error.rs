use grid_batch_core::batches::SignerId;
use grid_batch_core::{Excerpt, ServiceId};

use crate::http::refusals;

refusals! {
    /// A service or a signer is not in the list of those whose batches are accepted.
    pub(crate) enum AllowListError {
        #[error(
            "batches for the service {id} are not accepted here; use a service that intake.services allows, \
             or have the operator add it",
            id = Excerpt::of(.id.as_str())
        )]
        [FORBIDDEN, 1016, "Service Not Allowed"]
        ServiceNotAllowed { id: ServiceId },
        #[error(
            "batches signed by the key {0} are not accepted here; sign them with a key that intake.signers \
             allows, or have the operator add it"
        )]
        [FORBIDDEN, 1017, "Signer Not Allowed"]
        SignerNotAllowed(SignerId),
        #[error(
            "batches without a signer are not accepted here, because intake.signers allows only some; have the \
             operator remove it"
        )]
        [FORBIDDEN, 1017, "Signer Not Allowed"]
        NoSigner,
    }
}
