use serde::Deserialize;
use serde_json::{Value, json};

use super::{client::NodeClient, error::NodeError, quantity::Quantity};

/// The progress of a node that is syncing, as far as the node reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SyncProgress {
    pub(crate) current: Option<u64>,
    pub(crate) highest: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SyncProgressJson {
    current_block: Option<Quantity<u64>>,
    highest_block: Option<Quantity<u64>>,
}

impl NodeClient {
    /// How far the node has synced. `None`: it is not syncing, or does not report it.
    pub(crate) async fn sync_progress(&self) -> Result<Option<SyncProgress>, NodeError> {
        match self.request::<Value>("eth_syncing", json!([])).await {
            Ok(Value::Bool(false)) | Err(NodeError::Rpc { .. }) => Ok(None),
            Ok(progress) => {
                let progress: SyncProgressJson =
                    serde_json::from_value(progress).unwrap_or_default();
                let number = |quantity: Option<Quantity<u64>>| quantity.map(|Quantity(it)| it);
                let current = number(progress.current_block);
                Ok(Some(SyncProgress { current, highest: number(progress.highest_block) }))
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tests::node_with_methods;

    async fn progress(answer: Value) -> Result<Option<SyncProgress>, NodeError> {
        let (_server, node) = node_with_methods(move |_| answer.clone()).await;
        node.sync_progress().await
    }

    #[tokio::test]
    async fn progress_is_what_the_node_reports() {
        let told = json!({"result": {"currentBlock": "0x5", "highestBlock": "0x384"}});
        let some = SyncProgress { current: Some(5), highest: Some(900) };
        assert_eq!(progress(told).await, Ok(Some(some)));
        let none = SyncProgress { current: None, highest: None };
        for unclear in [json!({"result": true}), json!({"result": {"stages": []}})] {
            assert_eq!(progress(unclear).await, Ok(Some(none)));
        }
    }

    #[tokio::test]
    async fn node_without_the_method_is_not_syncing() {
        let unknown = json!({"error": {"code": -32004, "message": "method not supported"}});
        for answer in [json!({"result": false}), unknown] {
            assert_eq!(progress(answer).await, Ok(None));
        }
    }
}
