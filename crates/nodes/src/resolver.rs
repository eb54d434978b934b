use std::{fmt, marker::PhantomData};

use futures_core::future::BoxFuture;

use grid_batch_core::{NO_ADDRESS, Outcome, ScopeId, StatusUrlResolver, UrlResolver};

use crate::NodePool;

/// Resolves where a submitter sends the batches of a scope.
pub struct NodeResolver<S> {
    pool: NodePool,
    scope: PhantomData<fn() -> S>,
}

impl<S> NodeResolver<S> {
    pub(crate) fn new(pool: NodePool) -> Self {
        Self { pool, scope: PhantomData }
    }
}

impl<S: ScopeId> UrlResolver for NodeResolver<S> {
    type Id = S;

    fn url(&self, scope_id: &S) -> String {
        match self.pool.take_url(scope_id.service_id().as_str()) {
            Some(url) => url.to_owned(),
            None => format!("{NO_ADDRESS} no address is configured for the service: {scope_id}"),
        }
    }

    fn confirm<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.pool.confirm(url))
    }

    fn report(&self, batch_header: &str, url: &str, outcome: Outcome) {
        self.pool.sent(batch_header, url, outcome);
    }
}

impl<S> fmt::Debug for NodeResolver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}

/// The nodes of a pool that have confirmed their ledger.
#[derive(Debug)]
pub(crate) struct ConfirmedNodes(pub(crate) NodePool);

impl StatusUrlResolver for ConfirmedNodes {
    fn status_urls(&self, service_id: &str, batch_id: &str) -> Vec<String> {
        let mut urls = self.0.status_urls(service_id, batch_id);
        urls.retain(|url| self.0.is_confirmed(url));
        urls
    }
}
