use std::mem;

use grid_batch_local_chain::{ChainError, Endpoint, number};
use serde_json::{Value, json};

use super::transaction::SentTransaction;

/// Anvil's message for a transaction below the base fee.
pub(super) const BELOW_THE_BASE_FEE: &str = "max fee per gas less than block base fee";

/// Keeps transactions below the base fee pending, as geth does. Anvil refuses them, and drops those
/// that fall below it.
#[derive(Debug, Default)]
pub(super) struct UnderpricedPool {
    underpriced: Vec<SentTransaction>,
    /// The transactions that were pending at the node at the last update.
    at_node: Vec<SentTransaction>,
}

impl UnderpricedPool {
    /// Adds a transaction that the node accepted.
    pub(super) fn add_accepted(&mut self, transaction: SentTransaction) {
        self.remove_replaced(&transaction);
        self.at_node.push(transaction);
    }

    /// Adds a transaction that the node refused or dropped because of its fee.
    pub(super) fn add_underpriced(&mut self, transaction: SentTransaction) {
        self.remove_replaced(&transaction);
        self.underpriced.push(transaction);
    }

    /// The underpriced transaction with this hash.
    pub(super) fn find(&self, hash: &str) -> Option<&SentTransaction> {
        self.underpriced.iter().find(|transaction| transaction.hash == hash)
    }

    /// Adds the transactions that the node has dropped because of their fee, and sends it those
    /// that it accepts now.
    pub(super) fn update(&mut self, node: &Endpoint) -> Result<(), ChainError> {
        for transaction in mem::take(&mut self.at_node) {
            match locate(node, &transaction)? {
                TransactionLocation::Pool => self.at_node.push(transaction),
                TransactionLocation::Missing if base_fee(node)? > transaction.max_fee => {
                    self.add_underpriced(transaction);
                }
                TransactionLocation::Missing | TransactionLocation::Block => {}
            }
        }
        for transaction in mem::take(&mut self.underpriced) {
            match node.call("eth_sendRawTransaction", &json!([transaction.raw])) {
                Ok(_) => self.at_node.push(transaction),
                Err(ChainError::Refused { message, .. }) if message != BELOW_THE_BASE_FEE => {}
                Err(_) => self.underpriced.push(transaction),
            }
        }
        Ok(())
    }

    fn remove_replaced(&mut self, by: &SentTransaction) {
        let stays = |it: &SentTransaction| it.sender != by.sender || it.nonce != by.nonce;
        self.underpriced.retain(stays);
        self.at_node.retain(stays);
    }
}

/// Where a node has a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransactionLocation {
    /// It is pending.
    Pool,
    /// It is mined.
    Block,
    /// The node does not have it.
    Missing,
}

pub(super) fn locate(
    node: &Endpoint,
    transaction: &SentTransaction,
) -> Result<TransactionLocation, ChainError> {
    let found = node.call("eth_getTransactionByHash", &json!([transaction.hash]))?;
    Ok(match found {
        Value::Null => TransactionLocation::Missing,
        found if found["blockNumber"].is_null() => TransactionLocation::Pool,
        _ => TransactionLocation::Block,
    })
}

/// The base fee of the latest block, in wei.
fn base_fee(node: &Endpoint) -> Result<u128, ChainError> {
    let block = node.call("eth_getBlockByNumber", &json!(["latest", false]))?;
    number("the base fee", &block["baseFeePerGas"]).map(u128::from)
}
