//! Keystore files: a secret key that is encrypted with a password ("Web3 Secret Storage", version 3), as
//! geth, clef and `cast wallet` write them.

mod decrypt;
mod error;
mod file;
mod kdf;

pub use error::KeystoreError;
