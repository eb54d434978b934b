use std::{fmt, marker::PhantomData};

use futures_core::future::BoxFuture;
use grid_batch_core::ScopeId;
use grid_batch_core::ledger::Outcome;

use crate::NodePool;

/// Resolves where a batch is sent. It is called for each attempt.
pub trait UrlResolver: fmt::Debug + Sync + Send {
    /// The scope of the batches.
    type Id: ScopeId;

    /// The URL for batches of this scope, or [`NO_ADDRESS`] and the reason why there is none.
    fn url(&self, scope_id: &Self::Id) -> String;

    /// Succeeds if a batch may be sent to `url` now. The error is the reason why not, in words.
    fn confirm<'a>(&'a self, _url: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    /// Reports the outcome of an attempt to send this batch to `url`. It is [`Refused`](Outcome::Refused) also if
    /// [`confirm`] failed. This is called on the threads that send, so it must return quickly.
    ///
    /// [`confirm`]: Self::confirm
    fn report(&self, _batch_header: &str, _url: &str, _outcome: Outcome) {}
}

/// The prefix of a [`UrlResolver`]'s answer when it has no address for a scope. The reason follows it.
///
/// The batch is not sent, and its outcome is [`Refused`](Outcome::Refused).
pub const NO_ADDRESS: &str = "no-address:";

/// Resolves the nodes that are asked for the status of a batch.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
pub trait StatusUrlResolver: fmt::Debug + Sync + Send {
    /// Their URLs, the best first: the node that accepted the batch, then others that may know it.
    ///
    /// An empty `service_id` stands for requests that name no service: return all nodes.
    fn status_urls(&self, service_id: &str, batch_id: &str) -> Vec<String>;
}

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
