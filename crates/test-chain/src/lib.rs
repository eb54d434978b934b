#![doc = include_str!("../README.md")]

mod account;
mod anvil;
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

pub use account::Account;
pub use anvil::Anvil;
pub use error::ChainError;
pub use fault::Fault;
pub use installation::find_anvil;
pub use options::{AnvilOptions, Mining};
pub use pool::{Poll, Pool};
pub use proxy::{FaultProxy, SentTransaction};
pub use stop::Stop;
