#![doc = include_str!("../README.md")]

mod fault;
#[cfg(feature = "kms")]
mod kms;
mod proxy;
mod stop;
mod web3signer;

pub use fault::Fault;
// Tests of faults need a chain too.
pub use grid_batch_local_chain::{
    Account, Anvil, AnvilOptions, Chain, ChainError, Mining, Poll, Pool, find_anvil, find_hardhat,
};
#[cfg(feature = "kms")]
pub use kms::{KmsFault, KmsServer};
pub use proxy::{FaultProxy, SentTransaction};
pub use stop::Stop;
pub use web3signer::{SignerFault, Web3Signer};
