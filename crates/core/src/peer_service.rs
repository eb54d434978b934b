use crate::ServiceScopeId;

/// A service at another node of its circuit, where it has an id of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerService {
    /// The service that batches are for.
    pub service: ServiceScopeId,
    /// Its id at the other node.
    pub peer: ServiceScopeId,
    /// The URL of the other node.
    pub url: String,
}
