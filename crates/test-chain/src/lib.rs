#![doc = include_str!("../README.md")]

mod account;
mod chain;
mod deployment;
mod endpoint;
mod error;
mod fault;
mod hex;
mod installation;
mod node_process;
mod options;
mod pool;
mod proxy;
mod stop;
mod web3signer;

pub use account::Account;
pub use chain::{Anvil, Chain};
pub use error::ChainError;
pub use fault::Fault;
pub use installation::{find_anvil, find_hardhat};
pub use options::{AnvilOptions, Mining};
pub use pool::{Poll, Pool};
pub use proxy::{FaultProxy, SentTransaction};
pub use stop::Stop;
pub use web3signer::{SignerFault, Web3Signer};
