use std::sync::{Arc, Mutex, MutexGuard};

use alloy_primitives::{Signature, U256, hex, keccak256};
use grid_batch_support::lock;
use secp256k1::SecretKey;
use serde_json::{Value, json};

use super::signer_fault::SignerFault;
use crate::signing::sign;

const PUBLIC_KEYS: &str = "/api/v1/eth1/publicKeys";
const SIGN: &str = "/api/v1/eth1/sign/";

/// The answers of the signer.
#[derive(Debug)]
pub(super) struct SignerApi {
    key: SecretKey,
    state: Mutex<SignerState>,
}

#[derive(Debug, Default)]
pub(super) struct SignerState {
    pub(super) fault: Option<SignerFault>,
    pub(super) requests: usize,
    pub(super) sign_requests: usize,
    /// The number of requests that are kept without a response and whose client still waits.
    pub(super) unanswered: usize,
}

/// A request that is kept without a response. Dropped when its client disconnects.
#[derive(Debug)]
pub(super) struct Unanswered(Arc<SignerApi>);

impl Unanswered {
    pub(super) fn new(api: Arc<SignerApi>) -> Self {
        api.state().unanswered += 1;
        Self(api)
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.0.state().unanswered -= 1;
    }
}

/// What the client gets.
#[derive(Debug)]
pub(super) enum SignerReply {
    Response(u16, String),
    ConnectionClosed,
    Hang,
}

impl SignerApi {
    pub(super) fn new(key: SecretKey) -> Self {
        Self { key, state: Mutex::default() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SignerState> {
        lock(&self.state)
    }

    pub(super) fn reply(&self, method: &str, path: &str, body: &[u8]) -> SignerReply {
        let mut state = self.state();
        state.requests += 1;
        let signs = path.starts_with(SIGN);
        state.sign_requests += usize::from(signs);
        let fault = state.fault;
        drop(state);
        match fault {
            Some(SignerFault::Unavailable) => SignerReply::Response(503, String::new()),
            Some(SignerFault::ConnectionClosed) => SignerReply::ConnectionClosed,
            Some(SignerFault::Hung) => SignerReply::Hang,
            fault => self.respond(method, path, body, fault),
        }
    }

    fn respond(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
        fault: Option<SignerFault>,
    ) -> SignerReply {
        let has_key = fault != Some(SignerFault::NoKey);
        match (method, path) {
            ("GET", PUBLIC_KEYS) => {
                let keys = if has_key { vec![self.public_key()] } else { Vec::new() };
                SignerReply::Response(200, json!(keys).to_string())
            }
            ("POST", path) if has_key && path.strip_prefix(SIGN) == Some(&*self.public_key()) => {
                match transaction_in(body) {
                    Some(payload) => SignerReply::Response(200, self.signature(&payload, fault)),
                    None => SignerReply::Response(400, String::new()),
                }
            }
            _ => SignerReply::Response(404, String::new()),
        }
    }

    fn signature(&self, payload: &[u8], fault: Option<SignerFault>) -> String {
        let hash = keccak256(payload);
        match fault {
            Some(SignerFault::Garbage) => "0xno signature".to_owned(),
            Some(SignerFault::WrongKey) => hex_of(&sign(&other_key(&self.key), hash)),
            Some(SignerFault::UpperHalf) => hex_of(&in_upper_half(&sign(&self.key, hash))),
            _ => hex_of(&sign(&self.key, hash)),
        }
    }

    /// The key as `Web3Signer` shows it: uncompressed, without the first byte.
    fn public_key(&self) -> String {
        hex::encode_prefixed(&self.key.public_key().serialize_uncompressed()[1..])
    }
}

/// The bytes to sign, if they are a transaction without its signature.
fn transaction_in(body: &[u8]) -> Option<Vec<u8>> {
    const EIP1559: u8 = 2;
    const RLP_LIST: u8 = 0xc0;
    let request: Value = serde_json::from_slice(body).ok()?;
    let payload = hex::decode(request["data"].as_str()?).ok()?;
    let is_transaction = match payload.as_slice() {
        [EIP1559, first, ..] | [first, ..] => *first >= RLP_LIST,
        [] => false,
    };
    is_transaction.then_some(payload)
}

/// The same signature with the other `s`.
fn in_upper_half(signature: &Signature) -> Signature {
    let order = U256::from_be_bytes(secp256k1::constants::CURVE_ORDER);
    Signature::new(signature.r(), order - signature.s(), !signature.v())
}

/// Another key: the hash of this one.
fn other_key(key: &SecretKey) -> SecretKey {
    let hash = keccak256(key.to_secret_bytes());
    // Nearly every hash is a key.
    SecretKey::from_secret_bytes(hash.0).unwrap_or(*key)
}

/// 65 bytes: `r`, `s`, and 27 or 28.
fn hex_of(signature: &Signature) -> String {
    hex::encode_prefixed(signature.as_bytes())
}
