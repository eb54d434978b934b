#![doc = include_str!("../README.md")]

mod adapter;
mod context;
mod evidence;
mod follow;
mod funds;
mod identity;
mod key;
mod node;
mod nonce;
mod options;
mod pool;
mod price;
mod rules;
mod scope;
mod send;
mod sent_times;
mod settle;
mod signing_store;
#[cfg(test)]
mod test_server;
mod values;

pub use adapter::Evm;
pub use alloy_primitives::Address;
pub use evidence::EvmEvidenceReader;
pub use follow::EvmStatusReader;
pub use funds::AccountsWithoutFunds;
pub use identity::EvmIdentityReader;
pub use key::{GasAdminKey, GasAdminKeyError};
pub use options::{EvmError, EvmOptions, OracleOptions};
pub use rules::PoolRules;
pub use scope::AccountScopeId;
pub use send::EvmSender;
pub use values::{AddressError, AmountError, GasPrice, GasPriceError, parse_address};
