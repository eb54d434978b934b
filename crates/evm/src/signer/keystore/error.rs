use alloy_primitives::Address;
use thiserror::Error;

use crate::signer::GasAdminKeyError;

/// Why a keystore file gives no [`GasAdminKey`](crate::GasAdminKey). The texts contain no secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeystoreError {
    /// It is not a keystore.
    #[error("it is not a keystore file (JSON of Web3 Secret Storage, version 3): {0}")]
    Format(String),
    /// It is a keystore of a kind that is not supported.
    #[error("{what} {found:?} is not supported; write the keystore again with {supported}")]
    Unsupported {
        /// The part of the keystore.
        what: &'static str,
        /// Its value.
        found: String,
        /// What is supported.
        supported: &'static str,
    },
    /// The key derivation would take too long or too much memory.
    #[error("its key derivation needs too much time or memory: {0}")]
    TooCostly(String),
    /// The MAC differs.
    #[error("the password is wrong, or the file is damaged")]
    Password,
    /// The decrypted text is not a secret key.
    #[error(transparent)]
    Key(#[from] GasAdminKeyError),
    /// The file says that it has the key of another account.
    #[error("it has the key of {actual}, and says that it has that of {stated}")]
    Address {
        /// The account that the file names.
        stated: String,
        /// The account whose key it has.
        actual: Address,
    },
}
