use serde_json::{Value, json};

use super::{
    SentTransaction,
    answer::{refusal, result},
    waiting_room::{BELOW_THE_BASE_FEE, Place, WaitingRoom, place_of},
};
use crate::endpoint::Endpoint;

/// Anvil's words for a transaction that it has already.
const IMPORTED: &str = "transaction already imported";
/// The number of all errors of geth's pool.
const GETH: i64 = -32000;

/// Gives transactions to the node; where asked, by rules of geth that anvil does not have.
#[derive(Debug, Default)]
pub(super) struct Mempool {
    bump: Option<u32>,
    waiting_room: Option<WaitingRoom>,
    sent: Vec<SentTransaction>,
}

impl Mempool {
    pub(super) fn require_bump(&mut self, percent: u32) {
        self.bump = Some(percent);
    }

    pub(super) fn keep_underpriced(&mut self) {
        self.waiting_room.get_or_insert_default();
    }

    pub(super) fn sent(&self) -> &[SentTransaction] {
        &self.sent
    }

    /// The node's answer to any call; none where the node is not there.
    pub(super) fn forward(&mut self, node: &Endpoint, call: &Value) -> Option<Value> {
        if let Some(room) = &mut self.waiting_room {
            room.tend(node).ok()?;
        }
        match call["method"].as_str() {
            Some("eth_sendRawTransaction") => self.send(node, call),
            Some("eth_getTransactionByHash") => self.find(call).or_else(|| node.answer(call)),
            _ => node.answer(call),
        }
    }

    fn send(&mut self, node: &Endpoint, call: &Value) -> Option<Value> {
        let raw = call["params"][0].as_str().unwrap_or_default();
        let Some(transaction) = SentTransaction::decode(raw) else { return node.answer(call) };
        if self.bids_too_little(node, &transaction)? {
            return Some(refusal(call, GETH, "replacement transaction underpriced"));
        }
        self.sent.push(transaction.clone());
        let answer = node.answer(call)?;
        match (answer["error"]["message"].as_str(), &mut self.waiting_room) {
            (Some(IMPORTED), _) if self.bump.is_some() => {
                Some(refusal(call, GETH, "already known"))
            }
            (Some(BELOW_THE_BASE_FEE), Some(room)) => {
                let hash = json!(transaction.hash);
                room.keep(transaction);
                Some(result(call, hash))
            }
            (None, Some(room)) => {
                room.pass(transaction);
                Some(answer)
            }
            _ => Some(answer),
        }
    }

    fn find(&self, call: &Value) -> Option<Value> {
        let found = self.waiting_room.as_ref()?.find(call["params"][0].as_str()?)?;
        let description = json!({
            "hash": found.hash,
            "from": found.sender,
            "nonce": format!("{:#x}", found.nonce),
            "maxFeePerGas": format!("{:#x}", found.max_fee),
            "maxPriorityFeePerGas": format!("{:#x}", found.tip),
            "blockHash": null,
            "blockNumber": null,
            "transactionIndex": null,
        });
        Some(result(call, description))
    }

    /// Whether it is to take the place of one that is to be mined, and raises its fees too little.
    fn bids_too_little(&self, node: &Endpoint, transaction: &SentTransaction) -> Option<bool> {
        let Some(percent) = self.bump else { return Some(false) };
        for other in self.sent.iter().filter(|other| transaction.takes_the_place_of(other)) {
            if !transaction.raises(other, percent) && self.has(node, other)? {
                return Some(true);
            }
        }
        Some(false)
    }

    fn has(&self, node: &Endpoint, transaction: &SentTransaction) -> Option<bool> {
        let room = self.waiting_room.as_ref();
        if room.is_some_and(|room| room.find(&transaction.hash).is_some()) {
            return Some(true);
        }
        Some(place_of(node, transaction).ok()? == Place::Pool)
    }
}
