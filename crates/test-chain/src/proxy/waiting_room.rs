use std::mem;

use serde_json::{Value, json};

use super::SentTransaction;
use crate::{ChainError, endpoint::Endpoint, hex::number};

/// Anvil's words for a transaction that pays less than the base fee.
pub(super) const BELOW_THE_BASE_FEE: &str = "max fee per gas less than block base fee";

/// Where transactions wait that pay less than the base fee: anvil refuses them, and forgets those
/// that it had.
#[derive(Debug, Default)]
pub(super) struct WaitingRoom {
    waiting: Vec<SentTransaction>,
    /// What the node had when it was last looked for, and had not mined.
    at_the_node: Vec<SentTransaction>,
}

impl WaitingRoom {
    /// Takes note of one that the node has.
    pub(super) fn pass(&mut self, transaction: SentTransaction) {
        self.forget_outbid(&transaction);
        self.at_the_node.push(transaction);
    }

    /// Takes in one that the node would not have.
    pub(super) fn keep(&mut self, transaction: SentTransaction) {
        self.forget_outbid(&transaction);
        self.waiting.push(transaction);
    }

    /// What waits here under this hash.
    pub(super) fn find(&self, hash: &str) -> Option<&SentTransaction> {
        self.waiting.iter().find(|transaction| transaction.hash == hash)
    }

    /// Takes in what the node has forgotten for its price, and gives it what it would have by now.
    pub(super) fn tend(&mut self, node: &Endpoint) -> Result<(), ChainError> {
        for transaction in mem::take(&mut self.at_the_node) {
            match place_of(node, &transaction)? {
                Place::Pool => self.at_the_node.push(transaction),
                Place::Forgotten if base_fee(node)? > transaction.max_fee => self.keep(transaction),
                Place::Forgotten | Place::Block => {}
            }
        }
        for transaction in mem::take(&mut self.waiting) {
            match node.call("eth_sendRawTransaction", &json!([transaction.raw])) {
                Ok(_) => self.at_the_node.push(transaction),
                Err(ChainError::Refused { message, .. }) if message != BELOW_THE_BASE_FEE => {}
                Err(_) => self.waiting.push(transaction),
            }
        }
        Ok(())
    }

    fn forget_outbid(&mut self, by: &SentTransaction) {
        let stays = |it: &SentTransaction| it.sender != by.sender || it.nonce != by.nonce;
        self.waiting.retain(stays);
        self.at_the_node.retain(stays);
    }
}

/// Where a node has a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Among those that are to be mined.
    Pool,
    /// In the chain.
    Block,
    /// Nowhere.
    Forgotten,
}

/// Where the node has this transaction.
pub(super) fn place_of(
    node: &Endpoint,
    transaction: &SentTransaction,
) -> Result<Place, ChainError> {
    let found = node.call("eth_getTransactionByHash", &json!([transaction.hash]))?;
    Ok(match found {
        Value::Null => Place::Forgotten,
        found if found["blockNumber"].is_null() => Place::Pool,
        _ => Place::Block,
    })
}

/// The base fee of the latest block, in wei.
fn base_fee(node: &Endpoint) -> Result<u128, ChainError> {
    let block = node.call("eth_getBlockByNumber", &json!(["latest", false]))?;
    number("a base fee", &block["baseFeePerGas"]).map(u128::from)
}
