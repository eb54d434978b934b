use std::sync::Arc;

use grid_batch_core::BatchResult;
use grid_batch_http::{HttpClient, HttpError, HttpOptions, HttpRequests};
use grid_batch_support::redact_url;
use log::warn;

use crate::{
    memory::Memory,
    node::{BlockNumHash, NodeClient, NodeError},
};

/// Reads the id of the chain and the hash of its first block, because test chains often share an id.
///
/// A node that has removed its first block reports only the id of the chain.
#[derive(Debug, Clone)]
pub struct EvmIdentityReader {
    http: Arc<dyn HttpRequests>,
    /// For each node, whether it does not show its first block.
    without_first_block: Arc<Memory<String, bool>>,
}

impl EvmIdentityReader {
    /// A reader with its own connections.
    pub fn new(options: &HttpOptions) -> Result<Self, HttpError> {
        Ok(Self::with_client(Arc::new(HttpClient::new(options)?)))
    }

    /// A reader that sends its requests with this client.
    pub fn with_client(client: Arc<dyn HttpRequests>) -> Self {
        Self { http: client, without_first_block: Arc::default() }
    }

    /// The identity of any chain with this id, without its first block.
    pub fn id_of_chain(chain_id: u64) -> String {
        format!("chain {chain_id}")
    }

    /// The identity of the chain, as reported by the node at this URL.
    pub async fn read_id(&self, node: &str) -> BatchResult<String> {
        let node = NodeClient::new(Arc::clone(&self.http), node);
        let chain_id = node.chain_id().await?;
        let genesis = first_block(&node).await?;
        self.log_change(&node, genesis.is_some());
        let chain = Self::id_of_chain(chain_id);
        Ok(match genesis {
            Some(BlockNumHash { hash, .. }) => format!("{chain}, genesis block {hash}"),
            None => chain,
        })
    }

    /// Logs once that a node does not show its first block.
    fn log_change(&self, node: &NodeClient, shows_first_block: bool) {
        let url = redact_url(node.url());
        if self.without_first_block.changes(&url, !shows_first_block) && !shows_first_block {
            warn!(node = url.as_str();
                "the node does not show block 0, so it cannot distinguish this chain from one that was made \
                 anew with the same id");
        }
    }
}

/// The first block of the chain. `None`: the node has removed it.
async fn first_block(node: &NodeClient) -> Result<Option<BlockNumHash>, NodeError> {
    match node.block(0).await {
        Ok(block) => Ok(block.map(|block| block.id)),
        Err(error) if error.is_pruned() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::BatchError;
    use serde_json::json;

    use super::*;
    use crate::node::tests::node_with_methods;

    async fn read_id(genesis: serde_json::Value) -> BatchResult<String> {
        let (server, _) = node_with_methods(move |method| match method {
            "eth_chainId" => json!({"result": "0x89"}),
            _ => json!({"result": genesis}),
        })
        .await;
        EvmIdentityReader::new(&HttpOptions::default()).unwrap().read_id(server.url()).await
    }

    #[tokio::test]
    async fn identity_is_the_chain_with_its_first_block() {
        let hash = format!("0x{}", "5a".repeat(32));
        let block = |number: &str| {
            let parent = format!("0x{}", "00".repeat(32));
            json!({"number": number, "hash": hash, "parentHash": parent, "timestamp": "0x0", "transactions": []})
        };
        let id = read_id(block("0x0")).await;
        assert_eq!(id, Ok(format!("chain 137, genesis block {hash}")));
        assert!(matches!(read_id(block("0x1")).await, Err(BatchError::InvalidAnswer(_))));
    }

    #[tokio::test]
    async fn node_without_the_first_block_reports_the_chain_only() {
        let chain = Ok("chain 137".to_owned());
        assert_eq!(read_id(json!(null)).await, chain);
        let read_error = |code: i64, message: &'static str| async move {
            let (server, _) = node_with_methods(move |method| match method {
                "eth_chainId" => json!({"result": "0x89"}),
                _ => json!({"error": {"code": code, "message": message}}),
            })
            .await;
            EvmIdentityReader::new(&HttpOptions::default()).unwrap().read_id(server.url()).await
        };
        assert_eq!(read_error(4444, "pruned history unavailable").await, chain);
        assert_eq!(read_error(-32000, "block has been pruned").await, chain);
        read_error(-32000, "database closed").await.unwrap_err();
    }
}
