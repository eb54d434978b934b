use serde_json::{Value, json};

/// The program of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// Anvil, a node in Rust with the EVM `revm`.
    Anvil,
    /// Hardhat, a node in Node.js. Its EVM is `revm` too.
    Hardhat,
    /// Ganache, a node in Node.js with the EVM of ethereumjs. It is not maintained any more, and still in use.
    Ganache,
    /// The EVM in Python, with a small node of this crate around it.
    PyEvm,
}

/// A method of a node with its parameters.
pub(crate) type Call = (&'static str, Value);

/// What nodes differ in.
pub(crate) struct NodeFacts {
    pub(crate) name: &'static str,
    /// What it prints before its address.
    pub(crate) address_prefix: &'static str,
    /// The script that runs the node, if its program does not.
    pub(crate) script: Option<&'static str>,
    /// Whether it prints its accounts; otherwise it writes them to a file.
    pub(crate) prints_accounts: bool,
    /// Whether it has its chain on disk, so that it can be restarted.
    pub(crate) keeps_chain: bool,
    /// Adds this many blocks.
    pub(crate) mine: fn(u64) -> Call,
    /// From then on, blocks are added only on request.
    pub(crate) stop_mining: fn() -> Vec<Call>,
    /// From then on, transactions are mined when they arrive.
    pub(crate) start_mining: fn() -> Call,
}

const HARDHAT_ADDRESS: &str = "Started HTTP and WebSocket JSON-RPC server at http://";
const ADDRESS: &str = "Listening on ";

impl Node {
    pub(crate) const fn facts(self) -> NodeFacts {
        let facts = NodeFacts {
            name: "anvil",
            address_prefix: ADDRESS,
            script: None,
            prints_accounts: false,
            keeps_chain: true,
            mine: |blocks| ("hardhat_mine", json!([format!("{blocks:#x}")])),
            stop_mining: || {
                vec![("evm_setAutomine", json!([false])), ("evm_setIntervalMining", json!([0]))]
            },
            start_mining: || ("evm_setAutomine", json!([true])),
        };
        match self {
            Self::Anvil => facts,
            Self::Hardhat => NodeFacts {
                name: "hardhat",
                address_prefix: HARDHAT_ADDRESS,
                prints_accounts: true,
                keeps_chain: false,
                ..facts
            },
            Self::Ganache => NodeFacts {
                name: "ganache",
                script: Some(include_str!("nodes/ganache.js")),
                prints_accounts: true,
                mine: |blocks| ("evm_mine", json!([{ "blocks": blocks }])),
                stop_mining: || vec![("miner_stop", json!([]))],
                start_mining: || ("miner_start", json!([])),
                ..facts
            },
            Self::PyEvm => NodeFacts {
                name: "py_evm",
                script: Some(include_str!("nodes/py_evm.py")),
                prints_accounts: true,
                keeps_chain: false,
                stop_mining: || vec![("evm_setAutomine", json!([false]))],
                ..facts
            },
        }
    }
}
