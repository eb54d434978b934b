use std::{io, sync::Mutex};

use grid_batch_support::lock;
use serde_json::{Value, json};

use crate::{
    Account, AnvilOptions, ChainError, Node, endpoint::Endpoint, find_node,
    node_process::NodeProcess,
};

/// A chain of one node on a free local port. Dropping the value stops the node and deletes its data,
/// and so does the end of the process, even if it is killed.
///
/// Its methods block until the node has responded.
#[derive(Debug)]
pub struct Chain {
    kind: Node,
    endpoint: Endpoint,
    accounts: Vec<Account>,
    node: Mutex<NodeProcess>,
}

/// A chain, in tests whose node is usually anvil.
pub type Anvil = Chain;

impl Chain {
    /// Starts a new chain with a node of anvil. The node accepts connections when this returns.
    pub fn start(options: &AnvilOptions) -> Result<Self, ChainError> {
        Self::start_node(Node::Anvil, options)
    }

    /// Starts a new chain with this node, which has the accounts of anvil. This takes a few seconds.
    ///
    /// Only anvil has [`reorg`](Self::reorg), and hardhat and py-evm have no [`restart`](Self::restart): they keep no
    /// data on disk. Ganache and py-evm have none of the methods that change the state of the chain.
    pub fn start_node(node: Node, options: &AnvilOptions) -> Result<Self, ChainError> {
        let started = NodeProcess::start(node, &find_node(node)?, options);
        Self::of(node, started)
            .map_err(|source| ChainError::Start { what: node.facts().name, source })
    }

    /// Starts a new chain with a node of hardhat. It mines each transaction when it arrives.
    pub fn start_hardhat() -> Result<Self, ChainError> {
        Self::start_node(Node::Hardhat, &AnvilOptions::default())
    }

    fn of(kind: Node, started: io::Result<NodeProcess>) -> io::Result<Self> {
        let node = started?;
        let endpoint = Endpoint::new(format!("http://127.0.0.1:{}", node.port()));
        Ok(Self { kind, endpoint, accounts: node.accounts()?, node: Mutex::new(node) })
    }

    /// The URL of the node.
    pub fn url(&self) -> &str {
        self.endpoint.url()
    }

    /// The accounts that have a balance from the start: 10 000 ether each.
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
        self.rpc("hardhat_setNextBlockBaseFeePerGas", json!([wei])).map(drop)
    }

    /// Adds blocks. The first contains the pending transactions that pay enough.
    pub fn mine(&self, blocks: u64) -> Result<(), ChainError> {
        let (method, params) = (self.kind.facts().mine)(blocks);
        self.rpc(method, params).map(drop)
    }

    /// Stops mining: from now on blocks are added only by [`mine`](Self::mine).
    pub fn stop_mining(&self) -> Result<(), ChainError> {
        let calls = (self.kind.facts().stop_mining)();
        calls.into_iter().try_for_each(|(method, params)| self.rpc(method, params).map(drop))
    }

    /// Mines the pending transactions, and from now on each transaction when it arrives.
    pub fn start_mining(&self) -> Result<(), ChainError> {
        let (method, params) = (self.kind.facts().start_mining)();
        self.rpc(method, params).map(drop)
    }

    /// Whether blocks are added automatically.
    pub fn is_mining(&self) -> Result<bool, ChainError> {
        if self.rpc("hardhat_getAutomine", json!([]))? == true {
            return Ok(true);
        }
        // Hardhat has no method for it, and mines at no interval here.
        let interval = self.rpc("anvil_getIntervalMining", json!([])).unwrap_or_default();
        Ok(interval.as_u64().is_some_and(|seconds| seconds > 0))
    }

    /// The number of the latest block.
    pub fn block_number(&self) -> Result<u64, ChainError> {
        let number = self.rpc("eth_blockNumber", json!([]))?;
        crate::hex::number("the block number", &number)
    }

    /// Makes the node drop a pending transaction.
    pub fn drop_transaction(&self, hash: &str) -> Result<(), ChainError> {
        self.rpc("hardhat_dropTransaction", json!([hash])).map(drop)
    }

    /// Replaces this many blocks with empty ones. The node drops their transactions.
    pub fn reorg(&self, depth: u64) -> Result<(), ChainError> {
        self.rpc("anvil_reorg", json!([depth, []])).map(drop)
    }

    /// Sets the gas limit of the blocks from the next one on, and adds one.
    pub fn set_block_gas_limit(&self, gas: u64) -> Result<(), ChainError> {
        self.rpc("evm_setBlockGasLimit", json!([format!("{gas:#x}")]))?;
        self.mine(1)
    }

    /// Sets the balance of an account.
    pub fn set_balance(&self, address: &str, wei: u128) -> Result<(), ChainError> {
        self.rpc("hardhat_setBalance", json!([address, format!("{wei:#x}")])).map(drop)
    }

    /// Restarts the node on the same port. It keeps the chain and loses the pending transactions.
    pub fn restart(&self) -> Result<(), ChainError> {
        let mut node = lock(&self.node);
        node.restart().map_err(|source| ChainError::Start { what: "the node again", source })
    }
}
