use alloy_primitives::{B256, Signature, hex};
use secp256k1::{
    Message, SecretKey,
    ecdsa::{RecoverableSignature, RecoveryId},
};

use crate::{Account, ChainError};

/// The key of an account.
pub(crate) fn secret_key(account: &Account) -> Result<SecretKey, ChainError> {
    let invalid = || ChainError::InvalidResponse {
        what: "the account's key",
        expected: "32 bytes in hex",
        value: account.address.clone().into(),
    };
    let key: [u8; 32] = hex::decode_to_array(&account.secret_key).map_err(|_| invalid())?;
    SecretKey::from_secret_bytes(key).map_err(|_| invalid())
}

pub(crate) fn sign(key: &SecretKey, hash: B256) -> Signature {
    let signature = RecoverableSignature::sign_ecdsa_recoverable(Message::from_digest(hash.0), key);
    let (id, bytes) = signature.serialize_compact();
    Signature::from_bytes_and_parity(&bytes, id == RecoveryId::One)
}
