use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::{
    Account, AnvilOptions, ChainError, account::read_accounts, endpoint::Endpoint, find_anvil,
    node_process::NodeProcess,
};

/// A chain of one node on a free local port. Dropping the value stops the node and deletes its data,
/// and so does the end of the process, even if it is killed.
///
/// Its methods block until the node has responded.
#[derive(Debug)]
pub struct Anvil {
    endpoint: Endpoint,
    accounts: Vec<Account>,
    node: Mutex<NodeProcess>,
}

impl Anvil {
    /// Starts a new chain. Its node accepts connections when this returns.
    pub fn start(options: &AnvilOptions) -> Result<Self, ChainError> {
        let start_error = |source| ChainError::Start { what: "anvil", source };
        let node = NodeProcess::start(&find_anvil()?, &options.arguments()).map_err(start_error)?;
        let accounts = read_accounts(&node.accounts_file()).map_err(start_error)?;
        let endpoint = Endpoint::new(format!("http://127.0.0.1:{}", node.port()));
        Ok(Self { endpoint, accounts, node: Mutex::new(node) })
    }

    /// The URL of the node.
    pub fn url(&self) -> &str {
        self.endpoint.url()
    }

    /// The accounts with a balance from the start: 10 000 ether each.
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// Calls any method of the node, such as `eth_getTransactionReceipt`.
    pub fn rpc(&self, method: &str, params: Value) -> Result<Value, ChainError> {
        self.endpoint.call(method, &params)
    }

    /// Sets the base fee of the next block. Each block that is not full lowers it by an eighth.
    pub fn set_base_fee(&self, gwei: u64) -> Result<(), ChainError> {
        let wei = format!("{:#x}", u128::from(gwei) * 1_000_000_000);
        self.rpc("anvil_setNextBlockBaseFeePerGas", json!([wei])).map(drop)
    }

    /// Adds blocks. The first contains the pending transactions that pay enough.
    pub fn mine(&self, blocks: u64) -> Result<(), ChainError> {
        self.rpc("anvil_mine", json!([blocks])).map(drop)
    }

    /// Stops mining: from now on blocks are added only by [`mine`](Self::mine).
    pub fn stop_mining(&self) -> Result<(), ChainError> {
        self.rpc("evm_setAutomine", json!([false]))?;
        self.rpc("evm_setIntervalMining", json!([0])).map(drop)
    }

    /// Mines the pending transactions, and from now on each transaction when it arrives.
    pub fn start_mining(&self) -> Result<(), ChainError> {
        self.rpc("evm_setAutomine", json!([true])).map(drop)
    }

    /// Whether blocks are added automatically.
    pub fn is_mining(&self) -> Result<bool, ChainError> {
        let automatic = self.rpc("anvil_getAutomine", json!([]))?;
        let interval = self.rpc("anvil_getIntervalMining", json!([]))?;
        Ok(automatic == true || interval.as_u64().is_some_and(|seconds| seconds > 0))
    }

    /// The number of the latest block.
    pub fn block_number(&self) -> Result<u64, ChainError> {
        let number = self.rpc("eth_blockNumber", json!([]))?;
        crate::hex::number("the block number", &number)
    }

    /// Makes the node drop a pending transaction.
    pub fn drop_transaction(&self, hash: &str) -> Result<(), ChainError> {
        self.rpc("anvil_dropTransaction", json!([hash])).map(drop)
    }

    /// Replaces this many blocks with empty ones. The node drops their transactions.
    pub fn reorg(&self, depth: u64) -> Result<(), ChainError> {
        self.rpc("anvil_reorg", json!([depth, []])).map(drop)
    }

    /// Sets the balance of an account.
    pub fn set_balance(&self, address: &str, wei: u128) -> Result<(), ChainError> {
        self.rpc("anvil_setBalance", json!([address, format!("{wei:#x}")])).map(drop)
    }

    /// Restarts the node on the same port. It keeps the chain and loses the pending transactions.
    pub fn restart(&self) -> Result<(), ChainError> {
        let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        node.restart().map_err(|source| ChainError::Start { what: "anvil again", source })
    }
}
