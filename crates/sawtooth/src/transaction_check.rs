use futures_util::future::join_all;
use grid_batch_core::evidence::TransactionAnswers;
use grid_batch_core::{BatchError, BatchResult, GlobalScopeId, ItemId, ScopeId};
use grid_batch_http::origin;

use crate::{
    Sawtooth,
    in_chain::{InChain, is_in_chain},
};

/// The number of transactions about which a node is asked at the same time. A validator has five threads for all of its
/// clients.
const TRANSACTIONS_AT_ONCE: usize = 4;

/// Asks the nodes whether transactions are in the chain. One node that has a transaction is enough, because the others
/// will get its block as well. A transaction is absent only if all nodes answer that they do not have it.
///
/// A chain with forks may abandon that block. The validators then put its batches back into their queues, where a batch
/// that depends on one of them waits for it.
impl Sawtooth {
    pub(crate) async fn find_transactions(
        &self,
        ids: &[ItemId],
    ) -> BatchResult<TransactionAnswers> {
        let nodes = self.nodes.status_urls(GlobalScopeId.service_id().as_str(), "");
        let mut answers = TransactionAnswers::default();
        let mut failure = None;
        for some in ids.chunks(TRANSACTIONS_AT_ONCE) {
            let questions = some.iter().map(async |id| (*id, self.is_applied(&nodes, *id).await));
            for (id, answer) in join_all(questions).await {
                match answer {
                    Ok(true) => answers.applied.push(id),
                    Ok(false) => answers.absent.push(id),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
        }
        match failure {
            Some(error) if answers == TransactionAnswers::default() => Err(error),
            _ => Ok(answers),
        }
    }

    /// Whether a node has the transaction. Fails if none has it and one does not answer.
    async fn is_applied(&self, nodes: &[String], id: ItemId) -> BatchResult<bool> {
        let unknown = || BatchError::Unavailable("no node can be asked".to_owned());
        let mut failure = nodes.is_empty().then(unknown);
        for node in nodes {
            match is_in_chain(&self.client, node, InChain::Transaction, &id.to_string()).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => failure = failure.or(Some(error.at(&origin(node)))),
            }
        }
        failure.map_or(Ok(false), Err)
    }
}
