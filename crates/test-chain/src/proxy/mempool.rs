use grid_batch_local_chain::Endpoint;
use serde_json::{Value, json};

use super::{
    response::{error_response, result_response},
    transaction::SentTransaction,
    underpriced_pool::{BELOW_THE_BASE_FEE, TransactionLocation, UnderpricedPool, locate},
};

/// Anvil's message for a transaction that it already has.
const ALREADY_IMPORTED: &str = "transaction already imported";
/// The code of all errors of geth's transaction pool.
const GETH_POOL_ERROR: i64 = -32000;

/// Forwards transactions to the node, optionally with rules of geth that anvil does not have.
#[derive(Debug, Default)]
pub(super) struct Mempool {
    required_bump: Option<u32>,
    underpriced: Option<UnderpricedPool>,
    sent: Vec<SentTransaction>,
}

impl Mempool {
    pub(super) fn require_bump(&mut self, percent: u32) {
        self.required_bump = Some(percent);
    }

    pub(super) fn keep_underpriced(&mut self) {
        self.underpriced.get_or_insert_default();
    }

    pub(super) fn sent(&self) -> &[SentTransaction] {
        &self.sent
    }

    /// The node's response to a call; `None` if the node is unreachable.
    pub(super) fn forward(&mut self, node: &Endpoint, call: &Value) -> Option<Value> {
        if let Some(pool) = &mut self.underpriced {
            pool.update(node).ok()?;
        }
        match call["method"].as_str() {
            Some("eth_sendRawTransaction") => self.send(node, call),
            Some("eth_getTransactionByHash") => {
                self.find_underpriced(call).or_else(|| node.response(call))
            }
            _ => node.response(call),
        }
    }

    fn send(&mut self, node: &Endpoint, call: &Value) -> Option<Value> {
        let raw = call["params"][0].as_str().unwrap_or_default();
        let Some(transaction) = SentTransaction::decode(raw) else { return node.response(call) };
        if self.is_underpriced_replacement(node, &transaction)? {
            let message = "replacement transaction underpriced";
            return Some(error_response(call, GETH_POOL_ERROR, message));
        }
        self.sent.push(transaction.clone());
        let response = node.response(call)?;
        match (response["error"]["message"].as_str(), &mut self.underpriced) {
            (Some(ALREADY_IMPORTED), _) if self.required_bump.is_some() => {
                Some(error_response(call, GETH_POOL_ERROR, "already known"))
            }
            (Some(BELOW_THE_BASE_FEE), Some(pool)) => {
                let hash = json!(transaction.hash);
                pool.add_underpriced(transaction);
                Some(result_response(call, hash))
            }
            (None, Some(pool)) => {
                pool.add_accepted(transaction);
                Some(response)
            }
            _ => Some(response),
        }
    }

    fn find_underpriced(&self, call: &Value) -> Option<Value> {
        let found = self.underpriced.as_ref()?.find(call["params"][0].as_str()?)?;
        let transaction = json!({
            "hash": found.hash,
            "from": found.sender,
            "nonce": format!("{:#x}", found.nonce),
            "maxFeePerGas": format!("{:#x}", found.max_fee),
            "maxPriorityFeePerGas": format!("{:#x}", found.tip),
            "blockHash": null,
            "blockNumber": null,
            "transactionIndex": null,
        });
        Some(result_response(call, transaction))
    }

    /// Whether it replaces a pending transaction without raising its fees enough.
    fn is_underpriced_replacement(
        &self,
        node: &Endpoint,
        transaction: &SentTransaction,
    ) -> Option<bool> {
        let Some(percent) = self.required_bump else { return Some(false) };
        for other in self.sent.iter().filter(|other| transaction.replaces(other)) {
            if !transaction.raises(other, percent) && self.is_pending(node, other)? {
                return Some(true);
            }
        }
        Some(false)
    }

    fn is_pending(&self, node: &Endpoint, transaction: &SentTransaction) -> Option<bool> {
        let pool = self.underpriced.as_ref();
        if pool.is_some_and(|pool| pool.find(&transaction.hash).is_some()) {
            return Some(true);
        }
        Some(locate(node, transaction).ok()? == TransactionLocation::Pool)
    }
}
