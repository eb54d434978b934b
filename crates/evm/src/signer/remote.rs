use std::{
    fmt,
    sync::{Arc, Mutex},
};

use alloy_primitives::{Address, Signature, hex};
use futures_core::future::BoxFuture;
use grid_batch_http::{HttpClient, HttpError, HttpOptions, HttpRequests, HttpResponse, join};
use grid_batch_support::{lock, redact_url};
use serde_json::json;

use super::transaction_signer::{SignerError, TransactionSigner};

/// A signer on another machine, with the interface of `Web3Signer`. The key never reaches this process.
///
/// It finds the account's public key with `GET /api/v1/eth1/publicKeys`, and signs with
/// `POST /api/v1/eth1/sign/{public key}`. The URL may have a user and a password; only its scheme and
/// host are ever shown.
pub struct RemoteSigner {
    http: Arc<dyn HttpRequests>,
    url: String,
    account: Address,
    /// The account's public key, as the signer writes it. `None`: it has not been requested yet.
    public_key: Mutex<Option<String>>,
}

impl RemoteSigner {
    /// The signer at this URL for this account. `request_timeout` of the options is the time limit of each request.
    pub fn new(url: &str, account: Address, options: &HttpOptions) -> Result<Self, HttpError> {
        Ok(Self::with_client(url, account, Arc::new(HttpClient::new(options)?)))
    }

    /// The same signer, to which another client sends the requests.
    pub fn with_client(url: &str, account: Address, client: Arc<dyn HttpRequests>) -> Self {
        Self { http: client, url: url.to_owned(), account, public_key: Mutex::default() }
    }

    async fn request_signature(&self, payload: &[u8]) -> Result<Signature, SignerError> {
        let public_key = match self.known_public_key() {
            Some(public_key) => public_key,
            None => self.find_public_key().await?,
        };
        let url = self.path(&format!("api/v1/eth1/sign/{public_key}"))?;
        let request = json!({"data": hex::encode_prefixed(payload)}).to_string();
        let headers = [("content-type", "application/json"), ("accept", "text/plain")];
        let response = self.http.post(&url, &headers, request.into()).await;
        let response = response.map_err(|error| self.unavailable(error))?;
        if response.status == 404 {
            // The signer may have reloaded its keys, and this one may have another name now.
            self.set_public_key(None);
        }
        let text = self.body(response)?;
        let signature = text.trim().trim_matches('"').parse();
        signature.map_err(|_| self.wrong_answer("its response is not a signature of 65 bytes"))
    }

    /// Finds the account's public key among those of the signer.
    async fn find_public_key(&self) -> Result<String, SignerError> {
        let url = self.path("api/v1/eth1/publicKeys")?;
        let response = self.http.get(&url, &[("accept", "application/json")]).await;
        let text = self.body(response.map_err(|error| self.unavailable(error))?)?;
        let keys: Vec<String> = serde_json::from_str(&text)
            .map_err(|_| self.wrong_answer("its response is not a list of public keys"))?;
        let key = keys.into_iter().find(|key| account_of(key) == Some(self.account));
        let key = key.ok_or_else(|| {
            let Self { account, .. } = self;
            SignerError::Refused(format!("{self} has no key of {account}; add it there"))
        })?;
        self.set_public_key(Some(key.clone()));
        Ok(key)
    }

    /// The body of a response with status 200.
    fn body(&self, response: HttpResponse) -> Result<String, SignerError> {
        match response.status {
            200 => {}
            status @ (408 | 429 | 500..) => {
                let text = format!("{self} answered with HTTP status {status}");
                return Err(SignerError::Unavailable(text));
            }
            status => {
                let text = format!("{self} answered with HTTP status {status}; see its log");
                return Err(SignerError::Refused(text));
            }
        }
        let body = response.body.map_err(|error| self.unavailable(error))?;
        String::from_utf8(body).map_err(|_| self.wrong_answer("its response is not text"))
    }

    fn path(&self, path: &str) -> Result<String, SignerError> {
        join(&self.url, path).map_err(|error| SignerError::Refused(format!("{self}: {error}")))
    }

    fn unavailable(&self, error: HttpError) -> SignerError {
        SignerError::Unavailable(format!("{self}: {error}"))
    }

    /// The response is not shown, because it may contain a signature.
    fn wrong_answer(&self, reason: &str) -> SignerError {
        SignerError::WrongAnswer(format!("{self}: {reason}"))
    }

    fn known_public_key(&self) -> Option<String> {
        lock(&self.public_key).clone()
    }

    fn set_public_key(&self, key: Option<String>) {
        *lock(&self.public_key) = key;
    }
}

impl TransactionSigner for RemoteSigner {
    fn address(&self) -> Address {
        self.account
    }

    fn sign<'a>(&'a self, payload: &'a [u8]) -> BoxFuture<'a, Result<Signature, SignerError>> {
        Box::pin(self.request_signature(payload))
    }
}

/// The account of an uncompressed public key in hex, with or without its first byte. `None`: it is not such a key. The
/// key becomes part of the path of a URL, so nothing else is accepted.
fn account_of(public_key: &str) -> Option<Address> {
    const UNCOMPRESSED: u8 = 4;
    let bytes = hex::decode(public_key).ok()?;
    let point = match bytes.as_slice() {
        [UNCOMPRESSED, point @ ..] if point.len() == 64 => point,
        point if point.len() == 64 => point,
        _ => return None,
    };
    Some(Address::from_raw_public_key(point))
}

impl fmt::Display for RemoteSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact_url(&self.url))
    }
}

impl fmt::Debug for RemoteSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteSigner({self}, for {})", self.account)
    }
}

#[cfg(test)]
mod tests {
    use secp256k1::SecretKey;

    use super::*;
    use crate::signer::test_key::{DEVELOPMENT, key};

    #[test]
    fn account_is_derived_from_an_uncompressed_public_key_only() {
        let secret = SecretKey::from_secret_bytes(hex::decode_to_array(DEVELOPMENT).unwrap());
        let public = secret.unwrap().public_key();
        let bytes = public.serialize_uncompressed();
        let account = Some(key().address());
        assert_eq!(account_of(&hex::encode(bytes)), account);
        assert_eq!(account_of(&hex::encode_prefixed(&bytes[1..])), account);
        for other in
            [hex::encode(public.serialize()), "0x".to_owned(), "../eth2".to_owned(), String::new()]
        {
            assert_eq!(account_of(&other), None, "{other:?}");
        }
    }

    #[test]
    fn debug_shows_no_password() {
        let account = key().address();
        let url = "https://user:hidden@signer:9000/path";
        let signer = RemoteSigner::new(url, account, &HttpOptions::default()).unwrap();
        assert_eq!(
            format!("{signer:?}"),
            format!("RemoteSigner(https://signer:9000, for {account})")
        );
    }
}
