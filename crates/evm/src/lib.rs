#![doc = include_str!("../README.md")]

mod account;
mod action;
mod adapter;
mod ahead;
mod beneficiaries;
mod calls;
mod chain_facts;
mod context;
mod evidence;
mod facts;
mod gas;
mod heads;
mod identity;
mod memory;
mod node;
mod nonce;
mod options;
mod pool;
mod price;
mod rules;
mod scope;
mod send;
mod send_rules;
mod sent_times;
mod settings;
mod settle;
mod setup;
mod signer;
mod signing_store;
mod statuses;
mod sync;
#[cfg(test)]
mod test_server;
mod values;

pub use adapter::Evm;
pub use alloy_primitives::{Address, Signature, U256};
pub use beneficiaries::AllowedBeneficiaries;
pub use calls::AccountRules;
pub use facts::facts;
pub use gas::{AccountGas, GasLimit, GasWatch, PoolGas, Seen, WatchedAccount};
pub use identity::EvmIdentityReader;
pub use options::{EvmError, EvmOptions, OracleOptions};
pub use rules::PoolRules;
pub use scope::AccountScopeId;
pub use send_rules::SendRule;
pub use settings::{
    ChainSettings, EvmSettings, GasAdminSettings, KeySource, OracleSource, PasswordSource,
    PoolSettings, SETTINGS, TestSettings,
};
pub use settle::EvmAccountCheck;
pub use setup::{EvmConnections, EvmSetup, EvmSetupError, warn_of_former_gas_admins};
#[cfg(any(feature = "aws-kms", feature = "gcp-kms"))]
pub use signer::KmsSigner;
pub use signer::{
    GasAdminKey, GasAdminKeyError, KeystoreError, RemoteSigner, SignerError, TransactionSigner,
};
pub use values::{AddressError, AmountError, GasPrice, GasPriceError, parse_address, parse_amount};
