use std::{error::Error, fmt, time::Duration};

use alloy_primitives::{Address, Signature, keccak256};
use alloy_signer::Signer;
use futures_core::future::BoxFuture;
use tokio::{sync::OnceCell, time::timeout};

use crate::signer::{SignerError, TransactionSigner};

pub(super) type AlloySigner = Box<dyn Signer + Send + Sync>;

/// The kind of an error, and its reason without the name of the signer.
pub(super) type Failure = (fn(String) -> SignerError, String);

type Connect = Box<dyn Fn() -> BoxFuture<'static, Result<AlloySigner, Failure>> + Send + Sync>;

/// A key in the KMS of a cloud, by a signer of alloy. The key never reaches this process.
///
/// It connects when it signs first. While that fails, it tries again with each signature, so a server can start while
/// the KMS cannot be reached.
pub struct KmsSigner {
    name: String,
    account: Address,
    /// For one signature, including the connection and the credentials before the first one.
    time_limit: Duration,
    connect: Connect,
    /// What an error of the connected signer means.
    failure: fn(&(dyn Error + 'static)) -> Failure,
    connected: OnceCell<AlloySigner>,
}

impl KmsSigner {
    pub(super) fn new<F>(
        name: String,
        account: Address,
        time_limit: Duration,
        connect: impl Fn() -> F + Send + Sync + 'static,
        failure: fn(&(dyn Error + 'static)) -> Failure,
    ) -> Self
    where
        F: Future<Output = Result<AlloySigner, Failure>> + Send + 'static,
    {
        let connect = Box::new(move || -> BoxFuture<'static, _> { Box::pin(connect()) });
        Self { name, account, time_limit, connect, failure, connected: OnceCell::new() }
    }

    async fn request_signature(&self, payload: &[u8]) -> Result<Signature, Failure> {
        let signer = self.connected.get_or_try_init(|| self.connect()).await?;
        let signed = signer.sign_hash(&keccak256(payload)).await;
        signed.map_err(|error| match error {
            alloy_signer::Error::Other(error) => (self.failure)(&*error),
            error => (self.failure)(&error),
        })
    }

    async fn connect(&self) -> Result<AlloySigner, Failure> {
        let signer = (self.connect)().await?;
        match signer.address() {
            address if address == self.account => Ok(signer),
            other => {
                let reason = format!("it is the key of {other} and not of {}", self.account);
                Err((SignerError::Refused, reason))
            }
        }
    }
}

impl TransactionSigner for KmsSigner {
    fn address(&self) -> Address {
        self.account
    }

    fn sign<'a>(&'a self, payload: &'a [u8]) -> BoxFuture<'a, Result<Signature, SignerError>> {
        Box::pin(async move {
            let signed = timeout(self.time_limit, self.request_signature(payload)).await;
            let signed = signed.unwrap_or_else(|_| {
                let reason = format!("no signature within {:?}", self.time_limit);
                Err((SignerError::Unavailable, reason))
            });
            signed.map_err(|(kind, reason)| kind(format!("{}: {reason}", self.name)))
        })
    }
}

impl fmt::Debug for KmsSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KmsSigner({}, for {})", self.name, self.account)
    }
}

/// The cause of an error of a connection. The errors around it only say that there is one.
pub(super) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
