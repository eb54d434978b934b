use std::sync::Arc;

use futures_core::future::BoxFuture;
use grid_batch_core::ledger::Ledger;
use grid_batch_core::{BatchResult, ServiceScopeId};

use super::OpenFn;
use crate::{Config, StartError};

/// How this crate makes an adapter. The adapter may need more of the store than its batches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BuiltIn {
    /// Checks the settings, and returns what opens the adapter.
    pub(super) prepare: fn(&Config) -> Result<OpenFn<'_>, StartError>,
    /// Makes what asks nodes which ledger they belong to.
    pub(super) identity: FromConfig<IdentityFn>,
    /// What the nodes must tell of their ledger, if the settings say so.
    pub(super) id: Option<FromConfig<String>>,
    /// Makes what asks nodes whether they have a service.
    pub(super) service: Option<FromConfig<ServiceFn>>,
}

type FromConfig<T> = fn(&Config) -> Result<T, StartError>;

/// Asks the node at this URL which ledger it belongs to.
pub(in crate::server) type IdentityFn =
    Box<dyn Fn(String) -> BoxFuture<'static, BatchResult<String>>>;

/// Asks the node at this URL whether it has this service.
pub(in crate::server) type ServiceFn =
    Box<dyn Fn(String, ServiceScopeId) -> BoxFuture<'static, BatchResult<bool>>>;

/// Asks nodes through this adapter.
pub(super) fn identity_of(ledger: Arc<dyn Ledger>) -> IdentityFn {
    Box::new(move |node| {
        let ledger = Arc::clone(&ledger);
        Box::pin(async move { ledger.identity(&node).await })
    })
}
