use std::fmt;

use alloy_primitives::{Address, Signature};
use futures_core::future::BoxFuture;
use thiserror::Error;

/// Signs the transactions of one gas admin.
///
/// ```
/// use grid_batch_evm::{GasAdminKey, TransactionSigner};
///
/// let key: GasAdminKey = "07".repeat(32).parse()?;
/// let signer: Box<dyn TransactionSigner> = Box::new(key);
/// println!("signs for {}", signer.address());
/// # Ok::<(), grid_batch_evm::GasAdminKeyError>(())
/// ```
pub trait TransactionSigner: fmt::Debug + Send + Sync {
    /// The account that it signs for.
    fn address(&self) -> Address;

    /// Signs the Keccak-256 hash of `payload`, which is a transaction without its signature.
    ///
    /// The withdrawal and those after it wait for this, so it must have a time limit. The signature is verified before
    /// it is used.
    fn sign<'a>(&'a self, payload: &'a [u8]) -> BoxFuture<'a, Result<Signature, SignerError>>;
}

/// Why a transaction was not signed. Withdrawals wait until the signer signs again; they do not fail.
///
/// The messages are shown to clients. They name the signer but contain no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SignerError {
    /// The signer cannot be reached, does not answer in time, or is overloaded.
    #[error("the signer is unavailable: {0}")]
    Unavailable(String),
    /// The signer does not sign for the account; correct its configuration.
    #[error("the signer refuses to sign: {0}")]
    Refused(String),
    /// The answer is not a signature of the account.
    #[error("the signer gave a wrong answer, which is not used: {0}")]
    WrongAnswer(String),
}
