#![doc = include_str!("../README.md")]

mod account;
mod chain;
mod deployment;
mod endpoint;
mod error;
mod hex;
mod installation;
mod node;
mod node_process;
mod options;
mod pool;

pub use account::Account;
pub use chain::{Anvil, Chain};
pub use endpoint::Endpoint;
pub use error::ChainError;
pub use hex::number;
pub use installation::{find_anvil, find_node};
pub use node::Node;
pub use options::{AnvilOptions, Mining};
pub use pool::{Poll, Pool};
