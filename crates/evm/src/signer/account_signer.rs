use std::{
    fmt,
    sync::{Arc, Mutex},
};

use alloy_primitives::{Address, B256, Signature, keccak256};
use grid_batch_support::lock;
use log::{info, warn};
use secp256k1::{
    Message,
    ecdsa::{RecoverableSignature, RecoveryId},
};

use super::transaction_signer::{SignerError, TransactionSigner};

/// The signer of an account. Signatures that the chain would not accept from the account are not used.
pub(crate) struct AccountSigner {
    signer: Arc<dyn TransactionSigner>,
    /// The last error, until a signature follows it.
    error: Mutex<Option<SignerError>>,
}

impl AccountSigner {
    pub(crate) fn new(signer: Arc<dyn TransactionSigner>) -> Self {
        Self { signer, error: Mutex::default() }
    }

    pub(crate) fn address(&self) -> Address {
        self.signer.address()
    }

    /// Signs the hash of these bytes.
    pub(crate) async fn sign(&self, payload: &[u8]) -> Result<Signature, SignerError> {
        let signed = self.signer.sign(payload).await;
        let verified = signed.and_then(|signature| {
            let verified = verify(&signature, keccak256(payload), self.address());
            verified.map(|()| signature).map_err(SignerError::WrongAnswer)
        });
        self.log_change(verified.as_ref().err());
        verified
    }

    /// Logs once when an error begins, and once when it ends.
    fn log_change(&self, error: Option<&SignerError>) {
        let mut last = lock(&self.error);
        if last.as_ref() == error {
            return;
        }
        let account = self.address();
        match error {
            Some(error) => {
                warn!(account:%, error:%; "the signer does not sign; what this account sends waits")
            }
            None => info!(account:%; "the signer signs again"),
        }
        *last = error.cloned();
    }
}

impl fmt::Debug for AccountSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AccountSigner").field(&self.signer).finish()
    }
}

/// Checks that the account has made this signature. Since EIP-2, `s` must be in the lower half.
fn verify(signature: &Signature, hash: B256, account: Address) -> Result<(), String> {
    if *signature != signature.normalized_s() {
        return Err("s of the signature is in the upper half, which no chain accepts".to_owned());
    }
    match recover(signature, hash) {
        Ok(signer) if signer == account => Ok(()),
        Ok(signer) => Err(format!("it signed as {signer} and not as the gas admin {account}")),
        Err(error) => Err(format!("it is not a signature: {error}")),
    }
}

/// The account that made this signature.
pub(crate) fn recover(signature: &Signature, hash: B256) -> Result<Address, secp256k1::Error> {
    let id = RecoveryId::try_from(i32::from(signature.v()))?;
    let signature = RecoverableSignature::from_compact(&signature.as_bytes()[..64], id)?;
    let public = signature.recover(Message::from_digest(hash.0))?;
    Ok(Address::from_raw_public_key(&public.serialize_uncompressed()[1..]))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::U256;
    use futures_core::future::BoxFuture;

    use super::*;
    use crate::signer::{GasAdminKey, test_key::key};

    /// Claims to sign for an account, but signs with the key of another one or changes the signature.
    #[derive(Debug)]
    struct WrongSigner {
        account: Address,
        key: GasAdminKey,
        change: fn(Signature) -> Signature,
    }

    impl TransactionSigner for WrongSigner {
        fn address(&self) -> Address {
            self.account
        }

        fn sign<'a>(&'a self, payload: &'a [u8]) -> BoxFuture<'a, Result<Signature, SignerError>> {
            Box::pin(async move { self.key.sign(payload).await.map(self.change) })
        }
    }

    fn account_signer(key: GasAdminKey, change: fn(Signature) -> Signature) -> AccountSigner {
        let account = crate::signer::test_key::key().address();
        AccountSigner::new(Arc::new(WrongSigner { account, key, change }))
    }

    /// The same signature with `s` in the other half, which recovers to the same account.
    fn with_other_s(signature: Signature) -> Signature {
        let order = U256::from_be_bytes(secp256k1::constants::CURVE_ORDER);
        Signature::new(signature.r(), order - signature.s(), !signature.v())
    }

    #[tokio::test]
    async fn signature_of_the_account_is_used() {
        let signer = account_signer(key(), |signature| signature);
        let signature = signer.sign(b"payload").await.unwrap();
        assert_eq!(recover(&signature, keccak256(b"payload")).unwrap(), key().address());
        assert_eq!(*signer.error.lock().unwrap(), None);
    }

    #[tokio::test]
    async fn signature_of_another_account_is_not_used() {
        let other: GasAdminKey = "07".repeat(32).parse().unwrap();
        let expected = format!("it signed as {} and not", other.address());
        let error = account_signer(other, |signature| signature).sign(b"payload").await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(&expected) && error.contains("not used"), "{error}");
    }

    #[tokio::test]
    async fn changed_signature_is_not_used() {
        let changes: [fn(Signature) -> Signature; 4] = [
            with_other_s,
            |it| Signature::new(it.r(), it.s(), !it.v()),
            |it| Signature::new(U256::ZERO, it.s(), it.v()),
            |it| Signature::new(U256::MAX, it.s(), it.v()),
        ];
        for change in changes {
            let error = account_signer(key(), change).sign(b"payload").await.unwrap_err();
            assert!(matches!(error, SignerError::WrongAnswer(_)), "{error}");
        }
    }

    #[tokio::test]
    async fn error_is_remembered_until_a_signature_follows() {
        let signer = account_signer(key(), with_other_s);
        signer.sign(b"payload").await.unwrap_err();
        assert!(signer.error.lock().unwrap().is_some());
        signer.log_change(None);
        assert!(signer.error.lock().unwrap().is_none());
    }
}
