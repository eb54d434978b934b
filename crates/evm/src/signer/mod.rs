//! Signers of the transactions of a gas admin: a key in memory or a remote signer.

mod account_signer;
mod key;
mod keystore;
mod remote;
#[cfg(test)]
pub(crate) mod test_key;
mod transaction_signer;

pub(crate) use account_signer::AccountSigner;
pub use key::{GasAdminKey, GasAdminKeyError};
pub use keystore::KeystoreError;
pub use remote::RemoteSigner;
pub use transaction_signer::{SignerError, TransactionSigner};
