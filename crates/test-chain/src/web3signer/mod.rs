//! A test double of `Web3Signer`, a signer of transactions on another machine.

mod api;
mod server;
mod signer_fault;
mod web3_signer;

pub use signer_fault::SignerFault;
pub use web3_signer::Web3Signer;
