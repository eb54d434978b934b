use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::{
    Account, AnvilOptions, ChainError, account::read_accounts, endpoint::Endpoint, find_anvil,
    node::Node,
};

/// A chain of one node, on a free port of this machine. It is gone, with all its data, once the value
/// is dropped or the process has ended in whatever way.
///
/// Its methods block until the node has answered.
#[derive(Debug)]
pub struct Anvil {
    endpoint: Endpoint,
    accounts: Vec<Account>,
    node: Mutex<Node>,
}

impl Anvil {
    /// A new chain, whose node listens when this is answered.
    pub fn start(options: &AnvilOptions) -> Result<Self, ChainError> {
        let start_error = |source| ChainError::Start { what: "anvil", source };
        let node = Node::start(&find_anvil()?, &options.arguments()).map_err(start_error)?;
        let accounts = read_accounts(&node.accounts()).map_err(start_error)?;
        let endpoint = Endpoint::new(format!("http://127.0.0.1:{}", node.port()));
        Ok(Self { endpoint, accounts, node: Mutex::new(node) })
    }

    /// Where the node is.
    pub fn url(&self) -> &str {
        self.endpoint.url()
    }

    /// The accounts that have money from the start, each 10 000 ether.
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// What the node answers to any method that it knows, such as `eth_getTransactionReceipt`.
    pub fn rpc(&self, method: &str, params: Value) -> Result<Value, ChainError> {
        self.endpoint.call(method, &params)
    }

    /// Sets the base fee of the next block. Blocks that are not full lower it by an eighth each.
    pub fn set_base_fee(&self, gwei: u64) -> Result<(), ChainError> {
        let wei = format!("{:#x}", u128::from(gwei) * 1_000_000_000);
        self.rpc("anvil_setNextBlockBaseFeePerGas", json!([wei])).map(drop)
    }

    /// Adds blocks; the first takes along what waits, as far as it pays.
    pub fn mine(&self, blocks: u64) -> Result<(), ChainError> {
        self.rpc("anvil_mine", json!([blocks])).map(drop)
    }

    /// From now on there are new blocks only when they are [asked for](Self::mine).
    pub fn stop_mining(&self) -> Result<(), ChainError> {
        self.rpc("evm_setAutomine", json!([false]))?;
        self.rpc("evm_setIntervalMining", json!([0])).map(drop)
    }

    /// Mines what waits, and from now on each transaction as soon as it is there.
    pub fn start_mining(&self) -> Result<(), ChainError> {
        self.rpc("evm_setAutomine", json!([true])).map(drop)
    }

    /// Whether there are new blocks without being asked for.
    pub fn is_mining(&self) -> Result<bool, ChainError> {
        let automatic = self.rpc("anvil_getAutomine", json!([]))?;
        let pace = self.rpc("anvil_getIntervalMining", json!([]))?;
        Ok(automatic == true || pace.as_u64().is_some_and(|seconds| seconds > 0))
    }

    /// The number of the latest block.
    pub fn block_number(&self) -> Result<u64, ChainError> {
        let number = self.rpc("eth_blockNumber", json!([]))?;
        crate::hex::number("the number of a block", &number)
    }

    /// Has the node forget a transaction that waits.
    pub fn drop_transaction(&self, hash: &str) -> Result<(), ChainError> {
        self.rpc("anvil_dropTransaction", json!([hash])).map(drop)
    }

    /// Replaces as many blocks as this by empty ones. The node forgets what they did.
    pub fn reorg(&self, depth: u64) -> Result<(), ChainError> {
        self.rpc("anvil_reorg", json!([depth, []])).map(drop)
    }

    /// Sets how much money an account has.
    pub fn set_balance(&self, address: &str, wei: u128) -> Result<(), ChainError> {
        self.rpc("anvil_setBalance", json!([address, format!("{wei:#x}")])).map(drop)
    }

    /// Ends the node and starts it again in the same place. The chain stays; what waited is lost.
    pub fn restart(&self) -> Result<(), ChainError> {
        let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        node.restart().map_err(|source| ChainError::Start { what: "anvil again", source })
    }
}
