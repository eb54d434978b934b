use std::sync::{Arc, Mutex, MutexGuard};

use alloy_primitives::{hex, keccak256};
use grid_batch_support::lock;
use secp256k1::SecretKey;
use tokio::runtime::Runtime;

use super::{kms_fault::KmsFault, kms_key, server};
use crate::{Account, ChainError};

/// A KMS with the key of one account, which speaks the protocols of AWS and of Google Cloud and injects faults.
///
/// It signs with `s` in the upper half first, and then in turns. Dropping the value stops it and closes all
/// connections.
#[derive(Debug)]
pub struct KmsServer {
    url: String,
    api: Arc<KmsApi>,
    runtime: Option<Runtime>,
}

/// The answers of the KMS, in bytes that both protocols transport.
#[derive(Debug)]
pub(super) struct KmsApi {
    key: SecretKey,
    state: Mutex<KmsState>,
}

#[derive(Debug, Default)]
pub(super) struct KmsState {
    pub(super) fault: Option<KmsFault>,
    sign_requests: usize,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    PublicKey,
    Sign([u8; 32]),
}

impl KmsApi {
    pub(super) const AWS_KEY: &'static str =
        "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";
    pub(super) const GCP_KEY: &'static str =
        "projects/p/locations/global/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1";

    pub(super) fn state(&self) -> MutexGuard<'_, KmsState> {
        lock(&self.state)
    }

    pub(super) fn answer(&self, operation: Operation) -> Result<Vec<u8>, KmsFault> {
        let mut state = self.state();
        let fault = state.fault;
        let key = match fault {
            None | Some(KmsFault::Garbage) => self.key,
            Some(KmsFault::WrongKey) => other_key(&self.key),
            Some(fault) => return Err(fault),
        };
        let Operation::Sign(digest) = operation else {
            return Ok(kms_key::public_key(&key));
        };
        state.sign_requests += 1;
        match fault {
            Some(KmsFault::Garbage) => Ok(b"no signature".to_vec()),
            _ => Ok(kms_key::sign(&key, digest, state.sign_requests % 2 == 1)),
        }
    }
}

/// Another key: the hash of this one.
fn other_key(key: &SecretKey) -> SecretKey {
    // Nearly every hash is a key.
    SecretKey::from_secret_bytes(keccak256(key.to_secret_bytes()).0).unwrap_or(*key)
}

impl KmsServer {
    /// The name of the key at AWS.
    pub const AWS_KEY: &'static str = KmsApi::AWS_KEY;
    /// The name of the key at Google Cloud.
    pub const GCP_KEY: &'static str = KmsApi::GCP_KEY;

    /// Starts a KMS with this account's key, on a free local port.
    pub fn start(account: &Account) -> Result<Self, ChainError> {
        let invalid = || ChainError::InvalidResponse {
            what: "the account's key",
            expected: "32 bytes in hex",
            value: account.address.clone().into(),
        };
        let key: [u8; 32] = hex::decode_to_array(&account.secret_key).map_err(|_| invalid())?;
        let key = SecretKey::from_secret_bytes(key).map_err(|_| invalid())?;
        let api = Arc::new(KmsApi { key, state: Mutex::default() });
        let (port, runtime) = server::serve(api.clone())
            .map_err(|source| ChainError::Start { what: "the KMS", source })?;
        Ok(Self { url: format!("http://127.0.0.1:{port}"), api, runtime: Some(runtime) })
    }

    /// The URL of both protocols. Its path `/token` responds with a token for Google Cloud.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the fault of every request from now on, or none.
    pub fn set(&self, fault: impl Into<Option<KmsFault>>) {
        self.api.state().fault = fault.into();
    }

    /// How many signatures have been requested of it.
    pub fn sign_requests(&self) -> usize {
        self.api.state().sign_requests
    }
}

impl Drop for KmsServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
