use std::time::Duration;

use alloy_primitives::Address;
use futures_util::future::join_all;
use grid_batch_core::{BatchError, BatchResult, MonotonicTime, ScopeId, ServiceId};
use thiserror::Error;
use tokio::time::timeout;

use crate::{
    context::EvmContext,
    memory::Memory,
    node::{AccountState, NodeClient, NodeError},
    scope::AccountScopeId,
    values::parse_address,
};

/// The account of a gas admin, and the nodes to ask about it, in order of preference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account<'a> {
    pub(crate) context: &'a EvmContext,
    pub(crate) nodes: &'a [NodeClient],
    pub(crate) scope: &'a AccountScopeId,
}

/// Why an account cannot be examined now.
#[derive(Debug, Error)]
pub(crate) enum AccountError {
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Store(#[from] BatchError),
}

impl From<AccountError> for BatchError {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Node(error) => error.into(),
            AccountError::Store(error) => error,
        }
    }
}

impl<'a> Account<'a> {
    pub(crate) fn address(&self) -> Address {
        self.scope.address()
    }

    pub(crate) fn service_id(&self) -> &'a ServiceId {
        self.scope.service_id()
    }

    /// The pools whose withdrawals it makes.
    pub(crate) async fn pools(&self) -> BatchResult<Vec<Address>> {
        let pools = self.context.store.pools(self.service_id()).await?;
        Ok(pools.iter().filter_map(|pool| parse_address(pool).ok()).collect())
    }

    /// Fails if the node is on another chain.
    pub(crate) async fn check_chain(&self, node: &NodeClient) -> Result<(), NodeError> {
        let (actual, expected) = (node.chain_id().await?, self.context.options.chain_id);
        if actual == expected {
            return Ok(());
        }
        let reason = format!("the node is on chain {actual}, expected chain {expected}");
        Err(NodeError::InvalidResponse(reason))
    }

    /// Asks the nodes in turn until one finds something.
    ///
    /// A node that fails is skipped. If all fail, the first error is returned.
    pub(crate) async fn find<T, F>(
        &self,
        find: impl Fn(&'a NodeClient) -> F,
    ) -> Result<Option<T>, NodeError>
    where
        F: Future<Output = Result<Option<T>, NodeError>>,
    {
        let (mut has_answered, mut first_error) = (false, None);
        for node in self.nodes {
            match find(node).await {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => has_answered = true,
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.filter(|_| !has_answered).map_or(Ok(None), Err)
    }

    /// Asks all nodes except one at the same time, and returns the answers that arrive in time from nodes on the chain.
    /// `None` is not an answer.
    ///
    /// A node that fails is skipped for a while.
    pub(crate) async fn ask_others<T, F>(
        &self,
        except: &NodeClient,
        limit: Duration,
        ask: impl Fn(&'a NodeClient) -> F,
    ) -> Vec<(&'a NodeClient, T)>
    where
        F: Future<Output = Result<Option<T>, NodeError>>,
    {
        let (skipped, now) = (&self.context.skipped_nodes, self.context.monotonic());
        let others = self.nodes.iter().filter(|node| node.url() != except.url());
        let asked = others.filter(|node| !skipped.contains(node.url(), now)).map(|node| {
            let answer = ask(node);
            async move {
                let on_chain = async {
                    let Some(answer) = answer.await? else { return Ok(None) };
                    let is_on_chain = node.chain_id().await? == self.context.options.chain_id;
                    Ok::<_, NodeError>(is_on_chain.then_some(answer))
                };
                let answer = timeout(limit, on_chain).await;
                skipped.note(node.url(), matches!(answer, Ok(Ok(_))), now);
                Some((node, answer.ok()?.ok()??))
            }
        });
        join_all(asked.collect::<Vec<_>>()).await.into_iter().flatten().collect()
    }

    /// The state of the account at the other nodes.
    async fn at_others(
        &self,
        except: &NodeClient,
        limit: Duration,
    ) -> Vec<(&'a NodeClient, AccountState)> {
        let address = self.address();
        let read =
            |node: &'a NodeClient| async move { node.account_state(address).await.map(Some) };
        self.ask_others(except, limit, read).await
    }

    /// The highest number of transactions of the account that another node reports, among nodes that report pending
    /// ones.
    pub(crate) async fn highest_pending_at_others(&self, except: &NodeClient) -> u64 {
        let address = self.address();
        let read = |node: &'a NodeClient| node.pending_count(address);
        let shown = self.ask_others(except, Duration::MAX, read).await;
        shown.into_iter().map(|(_, count)| count).max().unwrap_or_default()
    }

    /// The highest number of transactions of the account, including pending ones, that another node reports within this
    /// time.
    pub(crate) async fn highest_count_at_others(
        &self,
        except: &NodeClient,
        limit: Duration,
    ) -> u64 {
        let others = self.at_others(except, limit).await;
        others.iter().map(|(_, account)| account.count()).max().unwrap_or_default()
    }

    /// The node with the most transactions of the account in blocks, if it has more than this many.
    pub(crate) async fn node_ahead(
        &self,
        except: &NodeClient,
        count: u64,
    ) -> Option<&'a NodeClient> {
        let others = self.at_others(except, Duration::from_secs(5)).await;
        let (node, most) = others.into_iter().max_by_key(|(_, account)| account.mined)?;
        (most.mined > count).then_some(node)
    }
}

/// The nodes that did not answer when they were last asked to confirm what another node shows.
///
/// They are skipped for a while, so that withdrawals do not wait for the timeout of a node that is down.
#[derive(Debug, Default)]
pub(crate) struct SkippedNodes(Memory<String, Option<MonotonicTime>>);

impl SkippedNodes {
    const SKIPPED_FOR: Duration = Duration::from_secs(30);

    fn contains(&self, url: &str, now: MonotonicTime) -> bool {
        let since = self.0.with(&url.to_owned(), |since| *since);
        since.is_some_and(|since| now.since(since) < Self::SKIPPED_FOR)
    }

    fn note(&self, url: &str, has_answered: bool, now: MonotonicTime) {
        self.0.with(&url.to_owned(), |since| *since = (!has_answered).then_some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_is_skipped_until_it_answers_or_for_a_while() {
        let at = |seconds| MonotonicTime::default().plus(Duration::from_secs(seconds));
        let nodes = SkippedNodes::default();
        nodes.note("a", false, at(0));
        assert!(nodes.contains("a", at(29)) && !nodes.contains("b", at(0)));
        assert!(!nodes.contains("a", at(30)));
        nodes.note("a", false, at(30));
        nodes.note("a", true, at(31));
        assert!(!nodes.contains("a", at(31)));
    }
}
