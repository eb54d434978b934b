#![doc = include_str!("../README.md")]

mod address;
mod amount;
mod asking;
mod bid;
mod depth;
mod ending;
mod evidence_reader;
mod evm;
mod gate;
mod gwei;
mod key;
mod lost;
mod node;
mod options;
mod pool;
mod price;
mod proposal;
mod records;
mod refusal;
mod revert;
mod rules;
mod said;
mod scope;
mod sender;
#[cfg(test)]
mod served;
mod shared;
mod sighting;
mod status_reader;
mod transaction;
mod user;

pub use address::{AddressError, parse_address};
pub use alloy_primitives::Address;
pub use amount::AmountError;
pub use evidence_reader::EvmEvidenceReader;
pub use evm::Evm;
pub use gwei::{GasPrice, GasPriceError};
pub use key::{GasAdminKey, GasAdminKeyError};
pub use options::{EvmError, EvmOptions, OracleOptions};
pub use rules::PoolRules;
pub use scope::AccountScopeId;
pub use sender::EvmSender;
pub use status_reader::EvmStatusReader;
