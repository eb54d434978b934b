use futures_core::future::BoxFuture;
use grid_batch_core::{BatchError, BatchResult, LedgerIdentityReader};
use grid_batch_http::{HttpClient, HttpError, HttpOptions};

use crate::node::NodeClient;

/// Reads the id of the chain and the hash of its first block. Test chains often share an id.
#[derive(Debug, Clone)]
pub struct EvmIdentityReader {
    http: HttpClient,
}

impl EvmIdentityReader {
    /// A reader with connections of its own.
    pub fn new(options: &HttpOptions) -> Result<Self, HttpError> {
        Ok(Self { http: HttpClient::new(options)? })
    }
}

impl LedgerIdentityReader for EvmIdentityReader {
    fn read_id<'a>(&'a self, node: &'a str) -> BoxFuture<'a, BatchResult<String>> {
        Box::pin(async move {
            let node = NodeClient::new(self.http.clone(), node);
            let chain_id = node.chain_id().await?;
            let Some(genesis) = node.block(0).await? else {
                return Err(BatchError::Unavailable("the node has no first block yet".to_owned()));
            };
            Ok(format!("chain {chain_id}, genesis block {}", genesis.id.hash))
        })
    }
}

#[cfg(test)]
mod tests {
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
            json!({"number": number, "hash": hash, "parentHash": parent, "transactions": []})
        };
        let id = read_id(block("0x0")).await;
        assert_eq!(id, Ok(format!("chain 137, genesis block {hash}")));
        assert!(matches!(read_id(block("0x1")).await, Err(BatchError::InvalidAnswer(_))));
        assert!(matches!(read_id(json!(null)).await, Err(BatchError::Unavailable(_))));
    }
}
