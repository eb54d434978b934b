//! Signers of the transactions of a gas admin: a key in memory, a remote signer, or the KMS of a cloud.

mod account_signer;
mod key;
mod keystore;
#[cfg(any(feature = "aws-kms", feature = "gcp-kms"))]
mod kms;
mod remote;
#[cfg(test)]
pub(crate) mod test_key;
mod transaction_signer;

pub(crate) use account_signer::AccountSigner;
pub use key::{GasAdminKey, GasAdminKeyError};
pub use keystore::KeystoreError;
#[cfg(any(feature = "aws-kms", feature = "gcp-kms"))]
pub use kms::KmsSigner;
pub use remote::RemoteSigner;
pub use transaction_signer::{SignerError, TransactionSigner};
