use futures_core::future::BoxFuture;
use thiserror::Error;

use crate::{AccessScope, ServiceId, SignerId};

/// Tells what a ledger's nodes say about a service before a request for it is answered.
pub trait ServiceCheck: Send + Sync {
    /// Whether the ledger has said that it has the service, or had it before; `false`: it has not answered, so a batch
    /// is stored and waits. The error is the reason if the ledger has said that it does not have the service.
    fn check<'a>(&'a self, service_id: &'a ServiceId) -> BoxFuture<'a, Result<bool, String>>;

    /// The error is the reason if a batch of the service is refused because the ledger may have committed it before.
    /// `is_new`: the client says that the ledger has not.
    fn check_history<'a>(
        &'a self,
        _service_id: &'a ServiceId,
        _is_new: bool,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    /// An error if the node of the service does not let this key do what the scope says, or if it cannot be asked.
    fn check_key<'a>(
        &'a self,
        service_id: &'a ServiceId,
        key: LedgerKey<'a>,
        scope: AccessScope,
    ) -> BoxFuture<'a, Result<(), KeyRefusal>>;
}

/// A client's key, with the token that proves to a node that the client has it.
#[derive(Clone, Copy)]
pub struct LedgerKey<'a> {
    /// The public key. The token is of this key.
    pub id: SignerId,
    /// The token that a node is shown. It is a secret.
    pub token: &'a str,
}

/// Why a key may not use a service.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyRefusal {
    /// The node has refused it.
    #[error("the node of the service does not accept the key")]
    Refused,
    /// The node has not said that it accepts the key, and cannot be asked now.
    #[error("the node of the service cannot be asked whether it accepts the key: {0}")]
    NotAsked(String),
}
