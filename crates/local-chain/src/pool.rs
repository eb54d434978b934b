use alloy_primitives::{Address, U256};
use serde_json::{Value, json};

use crate::{
    Account, Chain, ChainError,
    hex::{number, text, words},
};

/// The contract `WithdrawPool` on a chain.
#[derive(Debug, Clone)]
pub struct Pool {
    address: String,
}

/// A withdrawal that a pool has accepted, as read from the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// The pool's id of it, in decimal. The first is 1.
    pub id: String,
    /// The pool's id of the beneficiary, in decimal.
    pub member: String,
    /// The amount, in decimal.
    pub amount: String,
    /// The beneficiary: `0x` and 40 lower-case hex digits.
    pub beneficiary: String,
    /// The sender: `0x` and 40 lower-case hex digits.
    pub sender: String,
    /// The sender's nonce.
    pub nonce: u64,
    /// The hash of its transaction: `0x` and 64 lower-case hex digits.
    pub transaction_hash: String,
    /// The block with the transaction.
    pub block_number: u64,
}

impl Pool {
    /// The topic of `WithdrawPollCreated(uint256,uint256)`.
    const POLL_CREATED: &str = "0x91aa418bfd26049fe46510fca1b7593f8348efbf8e8e29a3844bb16584ff1448";
    /// The length of a function selector, which precedes the arguments of a call.
    const SELECTOR: usize = 4;

    /// Deploys a new pool, which accepts calls from `owner` only.
    pub fn deploy(chain: &Chain, owner: &Account) -> Result<Self, ChainError> {
        let compiled = include_str!("../contract/WithdrawPool.json");
        Ok(Self::at(chain.deploy(compiled, &[&owner.address])?))
    }

    /// Another contract with the same function and the same event.
    pub fn at(address: String) -> Self {
        Self { address }
    }

    /// The address of the pool: `0x` and 40 lower-case hex digits.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// All withdrawals that the pool has accepted, the oldest first.
    pub fn polls(&self, chain: &Chain) -> Result<Vec<Poll>, ChainError> {
        let filter = json!({
            "address": self.address, "topics": [Self::POLL_CREATED],
            "fromBlock": "earliest", "toBlock": "latest",
        });
        let logs = chain.rpc("eth_getLogs", json!([filter]))?;
        logs.as_array().into_iter().flatten().map(|log| poll_of(chain, log)).collect()
    }
}

fn poll_of(chain: &Chain, log: &Value) -> Result<Poll, ChainError> {
    let transaction = chain.rpc("eth_getTransactionByHash", json!([log["transactionHash"]]))?;
    let [id] = words("the data of the event", &log["data"], 0)?;
    let [member] = words("the topic of the event", &log["topics"][1], 0)?;
    let [amount, beneficiary] =
        words("the input of the call", &transaction["input"], Pool::SELECTOR)?;
    Ok(Poll {
        id: id.to_string(),
        member: member.to_string(),
        amount: amount.to_string(),
        beneficiary: address_in(beneficiary),
        sender: text("the sender", &transaction["from"])?,
        nonce: number("the sender's nonce", &transaction["nonce"])?,
        transaction_hash: text("the transaction hash", &log["transactionHash"])?,
        block_number: number("the block number", &log["blockNumber"])?,
    })
}

fn address_in(word: U256) -> String {
    format!("{:#x}", Address::from_word(word.into()))
}
