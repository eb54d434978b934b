use std::{future::Future, time::Duration};

use alloy_primitives::Address;
use tokio::{task::JoinSet, time::timeout};

use crate::{
    context::EvmContext,
    node::{AccountState, NodeClient, NodeError},
};

/// How long other nodes are waited for.
const LIMIT: Duration = Duration::from_secs(5);

/// Whether the nodes, except one, show at most this many transactions of an account, pending ones
/// included.
///
/// A node that does not answer, or is on another chain, shows nothing.
pub(crate) async fn others_show_at_most(
    context: &EvmContext,
    nodes: &[NodeClient],
    except: &NodeClient,
    admin: Address,
    count: u64,
) -> bool {
    let others = read_others(context, nodes, except, admin).await;
    others.iter().all(|(_, account)| account.count() <= count)
}

/// The node that shows most transactions of an account in blocks, if these are more than this many.
pub(crate) async fn node_ahead(
    context: &EvmContext,
    nodes: &[NodeClient],
    except: &NodeClient,
    admin: Address,
    count: u64,
) -> Option<NodeClient> {
    let others = read_others(context, nodes, except, admin).await;
    let (node, most) = others.into_iter().max_by_key(|(_, account)| account.mined)?;
    (most.mined > count).then_some(node)
}

/// What the account has at the nodes that answer in time and are on the chain, except at one.
async fn read_others(
    context: &EvmContext,
    nodes: &[NodeClient],
    except: &NodeClient,
    admin: Address,
) -> Vec<(NodeClient, AccountState)> {
    let chain_id = context.chain_id;
    let read_in_time = |node: NodeClient| async move {
        let account = timeout(LIMIT, read(&node, chain_id, admin)).await;
        account.unwrap_or_else(|elapsed| Err(NodeError::NoResponse(elapsed.to_string())))
    };
    ask_others(context, nodes, except, read_in_time).await
}

/// Asks all nodes except one, at once, and returns what they answer. `None` is no answer to the question.
///
/// A node that fails is skipped for a while.
pub(super) async fn ask_others<T, F>(
    context: &EvmContext,
    nodes: &[NodeClient],
    except: &NodeClient,
    ask: impl Fn(NodeClient) -> F,
) -> Vec<(NodeClient, T)>
where
    T: Send + 'static,
    F: Future<Output = Result<Option<T>, NodeError>> + Send + 'static,
{
    let now = context.clock.monotonic();
    let mut tasks = JoinSet::new();
    for node in nodes {
        if node.url() == except.url() || context.skipped_nodes.contains(node.url(), now) {
            continue;
        }
        let (answer, node) = (ask(node.duplicate()), node.duplicate());
        tasks.spawn(async move { (answer.await, node) });
    }
    let mut answers = Vec::new();
    while let Some(Ok((answer, node))) = tasks.join_next().await {
        context.skipped_nodes.note(node.url(), answer.is_ok(), now);
        if let Ok(Some(answer)) = answer {
            answers.push((node, answer));
        }
    }
    answers
}

/// What the account has, if the node is on the chain.
async fn read(
    node: &NodeClient,
    chain_id: u64,
    admin: Address,
) -> Result<Option<AccountState>, NodeError> {
    let account = node.account_state(admin).await?;
    Ok((node.chain_id().await? == chain_id).then_some(account))
}
