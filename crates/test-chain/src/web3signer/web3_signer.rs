use std::sync::Arc;

use tokio::runtime::Runtime;

use super::{api::SignerApi, server, signer_fault::SignerFault};
use crate::{Account, ChainError, signing::secret_key};

/// A signer with the interface of `Web3Signer` for one account, which injects faults.
///
/// It signs only bytes that are a transaction without its signature. Dropping the value stops it and closes all
/// connections.
#[derive(Debug)]
pub struct Web3Signer {
    url: String,
    api: Arc<SignerApi>,
    runtime: Option<Runtime>,
}

impl Web3Signer {
    /// Starts a signer with this account's key, on a free local port.
    pub fn start(account: &Account) -> Result<Self, ChainError> {
        let key = secret_key(account)?;
        let api = Arc::new(SignerApi::new(key));
        let (port, runtime) = server::serve(api.clone())
            .map_err(|source| ChainError::Start { what: "the remote signer", source })?;
        Ok(Self { url: format!("http://127.0.0.1:{port}"), api, runtime: Some(runtime) })
    }

    /// The URL of the signer.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the fault of every request from now on, or none.
    pub fn set(&self, fault: impl Into<Option<SignerFault>>) {
        self.api.state().fault = fault.into();
    }

    /// How many requests for a signature have arrived.
    pub fn sign_requests(&self) -> usize {
        self.api.state().sign_requests
    }

    /// How many requests wait for an answer, because the signer hangs.
    pub fn unanswered(&self) -> usize {
        self.api.state().unanswered
    }

    /// How many requests have arrived.
    pub fn requests(&self) -> usize {
        self.api.state().requests
    }
}

impl Drop for Web3Signer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
