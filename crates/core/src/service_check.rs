use futures_core::future::BoxFuture;

use crate::ServiceId;

/// Tells whether a ledger has a service, before a batch for it is stored.
pub trait ServiceCheck: Send + Sync {
    /// An error, with the reason, if the ledger has said that it does not have the service. Without an
    /// answer of the ledger there is no error: then the batch is stored and waits.
    fn check<'a>(&'a self, service_id: &'a ServiceId) -> BoxFuture<'a, Result<(), String>>;
}
