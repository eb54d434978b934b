use std::{
    thread,
    time::{Duration, Instant},
};

use alloy_primitives::{Address, U256};
use serde_json::{Value, json};

use crate::{
    Account, Anvil, ChainError,
    hex::{number, text, words},
};

/// A pool that withdrawals are proposed to: the contract `WithdrawPool`, on a chain.
#[derive(Debug, Clone)]
pub struct Pool {
    address: String,
}

/// A withdrawal that a pool has accepted, by what the chain has of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// The pool's number for it, in decimal: the first is 1.
    pub id: String,
    /// The pool's number for the beneficiary, in decimal.
    pub member: String,
    /// How much, in decimal.
    pub amount: String,
    /// For whom: `0x` and 40 lower-case hex digits.
    pub beneficiary: String,
    /// Who sent it, written likewise.
    pub sender: String,
    /// The sender's number for it.
    pub nonce: u64,
    /// The transaction that brought it: `0x` and 64 lower-case hex digits.
    pub transaction_hash: String,
    /// The block that has the transaction.
    pub block_number: u64,
}

impl Pool {
    /// `WithdrawPollCreated(uint256,uint256)`, as logs name it.
    const POLL_CREATED: &str = "0x91aa418bfd26049fe46510fca1b7593f8348efbf8e8e29a3844bb16584ff1448";
    /// Before its arguments, a call has four bytes that say which function is meant.
    const SELECTOR: usize = 4;
    /// Nobody's, so that the pool's owner has used no number when the tests begin.
    const DEPLOYER: &str = "0x00000000000000000000000000000000000de910";
    /// Longer than any block takes to come.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Puts a new pool on the chain, which hears nobody but `owner`.
    pub fn deploy(chain: &Anvil, owner: &Account) -> Result<Self, ChainError> {
        chain.set_balance(Self::DEPLOYER, u128::MAX >> 1)?;
        chain.rpc("anvil_impersonateAccount", json!([Self::DEPLOYER]))?;
        let creation = json!({
            "from": Self::DEPLOYER, "data": creation_code(owner)?, "gas": "0x100000",
            // Said so that a legacy chain takes it too.
            "gasPrice": chain.rpc("eth_gasPrice", json!([]))?,
        });
        let hash = chain.rpc("eth_sendTransaction", json!([creation]))?;
        if !chain.is_mining()? {
            chain.mine(1)?;
        }
        let receipt = receipt_of(chain, &hash)?;
        Ok(Self { address: text("the contract's address", &receipt["contractAddress"])? })
    }

    /// Where the pool is: `0x` and 40 lower-case hex digits.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Every withdrawal that the pool has accepted, oldest first.
    pub fn polls(&self, chain: &Anvil) -> Result<Vec<Poll>, ChainError> {
        let filter = json!({
            "address": self.address, "topics": [Self::POLL_CREATED],
            "fromBlock": "earliest", "toBlock": "latest",
        });
        let logs = chain.rpc("eth_getLogs", json!([filter]))?;
        logs.as_array().into_iter().flatten().map(|log| poll_of(chain, log)).collect()
    }
}

fn poll_of(chain: &Anvil, log: &Value) -> Result<Poll, ChainError> {
    let transaction = chain.rpc("eth_getTransactionByHash", json!([log["transactionHash"]]))?;
    let [id] = words("the data of a poll's event", &log["data"], 0)?;
    let [member] = words("the topic of a poll's event", &log["topics"][1], 0)?;
    let [amount, beneficiary] =
        words("the input of a proposal", &transaction["input"], Pool::SELECTOR)?;
    Ok(Poll {
        id: id.to_string(),
        member: member.to_string(),
        amount: amount.to_string(),
        beneficiary: address_in(beneficiary),
        sender: text("a sender", &transaction["from"])?,
        nonce: number("a sender's number", &transaction["nonce"])?,
        transaction_hash: text("a transaction's hash", &log["transactionHash"])?,
        block_number: number("the number of a block", &log["blockNumber"])?,
    })
}

fn address_in(word: U256) -> String {
    format!("{:#x}", Address::from_word(word.into()))
}

/// The compiled contract, and its owner as the one argument of its constructor.
fn creation_code(owner: &Account) -> Result<String, ChainError> {
    let contract: Value =
        serde_json::from_str(include_str!("../contract/WithdrawPool.json")).unwrap_or_default();
    let code = text("the contract's bytecode", &contract["bytecode"])?;
    Ok(format!("{code}{:0>64}", owner.address.trim_start_matches("0x")))
}

fn receipt_of(chain: &Anvil, hash: &Value) -> Result<Value, ChainError> {
    let deadline = Instant::now() + Pool::PATIENCE;
    loop {
        let receipt = chain.rpc("eth_getTransactionReceipt", json!([hash]))?;
        if !receipt.is_null() || Instant::now() > deadline {
            return Ok(receipt);
        }
        thread::sleep(Duration::from_millis(5));
    }
}
