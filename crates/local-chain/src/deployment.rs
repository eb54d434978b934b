use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{Chain, ChainError, hex::text};

/// An unused account, so that the first nonces of the others are still 0 when a test starts.
const DEPLOYER: &str = "0x00000000000000000000000000000000000de910";
/// Longer than the time until the next block.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Chain {
    /// Deploys a contract, and returns its address: `0x` and 40 lower-case hex digits.
    ///
    /// `compiled` is JSON with its `bytecode`; the arguments of its constructor are hex digits, each of up to 32
    /// bytes.
    pub fn deploy(&self, compiled: &str, arguments: &[&str]) -> Result<String, ChainError> {
        self.set_balance(DEPLOYER, u128::MAX >> 1)?;
        self.rpc("hardhat_impersonateAccount", json!([DEPLOYER]))?;
        let creation = json!({
            "from": DEPLOYER, "data": creation_code(compiled, arguments)?, "gas": "0x100000",
            // A legacy chain requires it.
            "gasPrice": self.rpc("eth_gasPrice", json!([]))?,
        });
        let hash = self.rpc("eth_sendTransaction", json!([creation]))?;
        if !self.is_mining()? {
            self.mine(1)?;
        }
        let receipt = receipt_of(self, &hash)?;
        text("the contract's address", &receipt["contractAddress"])
    }
}

fn creation_code(compiled: &str, arguments: &[&str]) -> Result<String, ChainError> {
    let contract: Value = serde_json::from_str(compiled).unwrap_or_default();
    let code = text("the contract's bytecode", &contract["bytecode"])?;
    let words = arguments.iter().map(|hex| format!("{:0>64}", hex.trim_start_matches("0x")));
    Ok(code + &words.collect::<String>())
}

fn receipt_of(chain: &Chain, hash: &Value) -> Result<Value, ChainError> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let receipt = chain.rpc("eth_getTransactionReceipt", json!([hash]))?;
        if !receipt.is_null() || Instant::now() > deadline {
            return Ok(receipt);
        }
        thread::sleep(Duration::from_millis(5));
    }
}
