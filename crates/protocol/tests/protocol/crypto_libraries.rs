//! Comparison of the library in use with another one.

use grid_batch_protocol::{PublicKey, SigningKey};
use k256::ecdsa::{
    Signature, VerifyingKey,
    signature::{Signer, Verifier},
};
use proptest::prelude::*;

fn both_keys(secret: [u8; 32]) -> Option<(SigningKey, k256::ecdsa::SigningKey)> {
    let ours = SigningKey::from_bytes(secret);
    let theirs = k256::ecdsa::SigningKey::from_slice(&secret);
    assert_eq!(ours.is_ok(), theirs.is_ok());
    ours.ok().zip(theirs.ok())
}

fn hex(public: &VerifyingKey) -> String {
    base16ct::lower::encode_string(public.to_sec1_point(true).as_bytes())
}

proptest! {
    #[test]
    fn libraries_make_the_same_keys_and_signatures(secret: [u8; 32], message: Vec<u8>) {
        let Some((ours, theirs)) = both_keys(secret) else { return Ok(()) };
        prop_assert_eq!(ours.public_key().to_string(), hex(theirs.verifying_key()));
        let signature: Signature = theirs.sign(&message);
        prop_assert_eq!(&ours.sign(&message)[..], &signature.to_bytes()[..]);
    }

    #[test]
    fn library_accepts_signatures_of_the_other(secret: [u8; 32], message: Vec<u8>) {
        let Some((ours, theirs)) = both_keys(secret) else { return Ok(()) };
        let signature: Signature = theirs.sign(&message);
        prop_assert_eq!(ours.public_key().verify(&message, &signature.to_bytes().into()), Ok(()));
        let signature = Signature::from_slice(&ours.sign(&message)).unwrap();
        prop_assert!(theirs.verifying_key().verify(&message, &signature).is_ok());
    }

    #[test]
    fn library_refuses_what_the_other_refuses(
        secret: [u8; 32],
        message: Vec<u8>,
        at in 0..64usize,
        bit in 0..8u8,
    ) {
        let Some((ours, theirs)) = both_keys(secret) else { return Ok(()) };
        let mut signature = ours.sign(&message);
        signature[at] ^= 1 << bit;
        prop_assert!(ours.public_key().verify(&message, &signature).is_err());
        let accepted = Signature::from_slice(&signature)
            .and_then(|signature| theirs.verifying_key().verify(&message, &signature));
        prop_assert!(accepted.is_err());
    }

    #[test]
    fn libraries_accept_the_same_public_keys(x: [u8; 32], odd: bool) {
        let bytes = [&[2 + u8::from(odd)][..], &x].concat();
        let ours = base16ct::lower::encode_string(&bytes).parse::<PublicKey>();
        prop_assert_eq!(ours.is_ok(), VerifyingKey::from_sec1_bytes(&bytes).is_ok());
    }
}
