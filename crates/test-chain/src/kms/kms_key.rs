use alloy_primitives::U256;
use secp256k1::{Message, SecretKey, ecdsa::Signature};

/// What stands before the 65 bytes of a key of secp256k1 in a `SubjectPublicKeyInfo`.
const SPKI_PREFIX: [u8; 23] = [
    0x30, 0x56, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b,
    0x81, 0x04, 0x00, 0x0a, 0x03, 0x42, 0x00,
];

/// The public key in DER.
pub(super) fn public_key(key: &SecretKey) -> Vec<u8> {
    [&SPKI_PREFIX[..], &key.public_key().serialize_uncompressed()].concat()
}

/// A signature in DER, with `s` in this half: a KMS does not choose.
pub(super) fn sign(key: &SecretKey, digest: [u8; 32], is_upper_half: bool) -> Vec<u8> {
    let signature = secp256k1::ecdsa::sign(Message::from_digest(digest), key);
    if !is_upper_half {
        return signature.serialize_der().to_vec();
    }
    let mut bytes = signature.serialize_compact();
    let order = U256::from_be_bytes(secp256k1::constants::CURVE_ORDER);
    let upper = order - U256::from_be_slice(&bytes[32..]);
    bytes[32..].copy_from_slice(&upper.to_be_bytes::<32>());
    Signature::from_compact(&bytes).map_or_else(|_| Vec::new(), |it| it.serialize_der().to_vec())
}
