use thiserror::Error;

use crate::batches::SignerId;

/// A client's key, with the token that proves to a node that the client has it.
#[derive(Clone, Copy)]
pub struct LedgerKey<'a> {
    /// The public key to which the token belongs.
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
    /// The node has not reported that it accepts the key, and cannot be asked now.
    #[error("the node of the service cannot be asked whether it accepts the key: {0}")]
    NotAsked(String),
}
