//! Keystore files: a secret key that is encrypted with a password ("Web3 Secret Storage", version 3), as
//! geth, clef and `cast wallet` write them.

use aes::Aes128;
use alloy_primitives::{Address, keccak256};
use ctr::{
    Ctr128BE,
    cipher::{KeyIvInit, StreamCipher},
};
use pbkdf2::pbkdf2_hmac;
use scrypt::{Params, scrypt};
use serde::Deserialize;
use sha2::Sha256;
use thiserror::Error;

use crate::signer::{GasAdminKey, GasAdminKeyError};

/// The derived key: its first half decrypts, its second half authenticates.
type DerivedKey = [u8; 32];

/// The memory that scrypt may use. By default, keystores use at most 256 MiB.
const MEMORY_LIMIT: u64 = 1 << 30;
/// The work that scrypt may do, as the product of its three parameters, which is 2^21 by default.
const WORK_LIMIT: u64 = 1 << 26;
/// The number of rounds that PBKDF2 may do, which is 262,144 by default.
const ROUND_LIMIT: u32 = 100_000_000;

/// Why no [`GasAdminKey`] can be read from a keystore file. The messages contain no secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeystoreError {
    /// It is not a keystore.
    #[error("it is not a keystore file (JSON of Web3 Secret Storage, version 3): {0}")]
    Format(String),
    /// It is a keystore of a kind that is not supported.
    #[error("{what} {found:?} is not supported; write the keystore again with {supported}")]
    Unsupported {
        /// The part of the keystore.
        what: &'static str,
        /// Its value.
        found: String,
        /// What is supported.
        supported: &'static str,
    },
    /// The key derivation would take too long or too much memory.
    #[error("its key derivation needs too much time or memory: {0}")]
    TooCostly(String),
    /// The MAC differs.
    #[error("the password is wrong, or the file is damaged")]
    Password,
    /// The decrypted text is not a secret key.
    #[error(transparent)]
    Key(#[from] GasAdminKeyError),
    /// The file names another account than that of its key.
    #[error("it says that it has the key of {stated}, but it has that of {actual}")]
    Address {
        /// The account that the file names.
        stated: String,
        /// The account whose key it has.
        actual: Address,
    },
}

/// The parts of a keystore file that are used.
#[derive(Deserialize)]
struct Keystore {
    #[serde(alias = "Crypto")]
    crypto: Crypto,
    version: u32,
    /// The account in hex. Some programs leave it out.
    address: Option<String>,
}

#[derive(Deserialize)]
struct Crypto {
    cipher: String,
    cipherparams: CipherParameters,
    ciphertext: String,
    kdf: String,
    kdfparams: KdfParameters,
    mac: String,
}

#[derive(Deserialize)]
struct CipherParameters {
    iv: String,
}

/// The parameters of both key derivations: `n`, `r` and `p` of scrypt, `c` and `prf` of PBKDF2.
#[derive(Deserialize)]
struct KdfParameters {
    salt: String,
    dklen: u32,
    n: Option<u64>,
    r: Option<u32>,
    p: Option<u32>,
    c: Option<u32>,
    prf: Option<String>,
}

impl Keystore {
    const VERSION: u32 = 3;

    fn parse(json: &str) -> Result<Self, KeystoreError> {
        let keystore: Self = serde_json::from_str(json).map_err(|error| {
            // Only the position is shown, because the message of serde may contain a value.
            KeystoreError::Format(format!("line {}, column {}", error.line(), error.column()))
        })?;
        match keystore.version {
            Self::VERSION => Ok(keystore),
            found => Err(unsupported("version", found, "version 3")),
        }
    }
}

/// The bytes of a field in hex.
fn bytes(field: &'static str, hex: &str) -> Result<Vec<u8>, KeystoreError> {
    let digits = hex.strip_prefix("0x").unwrap_or(hex);
    base16ct::mixed::decode_vec(digits)
        .map_err(|_| KeystoreError::Format(format!("{field} is not in hex")))
}

impl GasAdminKey {
    /// Decrypts the key in the JSON of a keystore file.
    ///
    /// It takes about a second and up to 256 MiB of memory, as the file says.
    pub fn from_keystore(json: &str, password: &str) -> Result<Self, KeystoreError> {
        let keystore = Keystore::parse(json)?;
        let derived = derive_key(&keystore.crypto, password)?;
        let ciphertext = bytes("ciphertext", &keystore.crypto.ciphertext)?;
        check_mac(&keystore.crypto, &derived, &ciphertext)?;
        let secret = decrypt(&keystore.crypto, &derived, ciphertext)?;
        let secret = secret.try_into().map_err(|_| GasAdminKeyError::Text)?;
        let key = Self::from_bytes(secret)?;
        check_address(keystore.address, key.address())?;
        Ok(key)
    }
}

/// Checks the MAC, which shows whether the password is right.
fn check_mac(
    crypto: &Crypto,
    derived: &DerivedKey,
    ciphertext: &[u8],
) -> Result<(), KeystoreError> {
    let mac = keccak256([&derived[16..], ciphertext].concat());
    if bytes("mac", &crypto.mac)? == mac.as_slice() { Ok(()) } else { Err(KeystoreError::Password) }
}

fn decrypt(
    crypto: &Crypto,
    derived: &DerivedKey,
    mut text: Vec<u8>,
) -> Result<Vec<u8>, KeystoreError> {
    if crypto.cipher != "aes-128-ctr" {
        return Err(unsupported("cipher", &crypto.cipher, "aes-128-ctr"));
    }
    let iv = bytes("iv", &crypto.cipherparams.iv)?;
    let mut cipher = Ctr128BE::<Aes128>::new_from_slices(&derived[..16], &iv)
        .map_err(|_| KeystoreError::Format("iv has not 16 bytes".to_owned()))?;
    cipher.apply_keystream(&mut text);
    Ok(text)
}

fn check_address(stated: Option<String>, actual: Address) -> Result<(), KeystoreError> {
    let Some(stated) = stated.filter(|stated| !stated.is_empty()) else { return Ok(()) };
    match stated.parse::<Address>() {
        Ok(address) if address == actual => Ok(()),
        _ => Err(KeystoreError::Address { stated, actual }),
    }
}

/// Derives the key from the password, as the keystore says.
fn derive_key(crypto: &Crypto, password: &str) -> Result<DerivedKey, KeystoreError> {
    let parameters = &crypto.kdfparams;
    let length = u32::try_from(size_of::<DerivedKey>()).unwrap_or(u32::MAX);
    if parameters.dklen != length {
        return Err(unsupported("dklen", parameters.dklen, "32"));
    }
    match crypto.kdf.as_str() {
        "scrypt" => derive_with_scrypt(parameters, password.as_bytes()),
        "pbkdf2" => derive_with_pbkdf2(parameters, password.as_bytes()),
        other => Err(unsupported("kdf", other, "scrypt or pbkdf2")),
    }
}

fn derive_with_scrypt(
    parameters: &KdfParameters,
    password: &[u8],
) -> Result<DerivedKey, KeystoreError> {
    let (Some(n), Some(r), Some(p)) = (parameters.n, parameters.r, parameters.p) else {
        return Err(KeystoreError::Format("kdfparams lacks n, r or p".to_owned()));
    };
    let invalid =
        || KeystoreError::Format("n, r and p are not valid parameters of scrypt".to_owned());
    if !n.is_power_of_two() || n < 2 {
        return Err(invalid());
    }
    let block = 128 * u64::from(r);
    let memory = n.saturating_mul(block).saturating_add(u64::from(p).saturating_mul(block));
    let work = n.saturating_mul(u64::from(r)).saturating_mul(u64::from(p));
    if memory > MEMORY_LIMIT || work > WORK_LIMIT {
        return Err(KeystoreError::TooCostly(format!("scrypt with n={n}, r={r}, p={p}")));
    }
    let log_n = u8::try_from(n.ilog2()).map_err(|_| invalid())?;
    let parameters_of_scrypt = Params::new(log_n, r, p).map_err(|_| invalid())?;
    let salt = bytes("salt", &parameters.salt)?;
    let mut key = DerivedKey::default();
    scrypt(password, &salt, &parameters_of_scrypt, &mut key).map_err(|_| invalid())?;
    Ok(key)
}

fn derive_with_pbkdf2(
    parameters: &KdfParameters,
    password: &[u8],
) -> Result<DerivedKey, KeystoreError> {
    match parameters.prf.as_deref() {
        Some("hmac-sha256") => {}
        other => return Err(unsupported("prf", other.unwrap_or_default(), "hmac-sha256")),
    }
    let Some(rounds) = parameters.c.filter(|rounds| *rounds > 0) else {
        return Err(KeystoreError::Format("kdfparams lacks c".to_owned()));
    };
    if rounds > ROUND_LIMIT {
        return Err(KeystoreError::TooCostly(format!("pbkdf2 with c={rounds}")));
    }
    let salt = bytes("salt", &parameters.salt)?;
    let mut key = DerivedKey::default();
    pbkdf2_hmac::<Sha256>(password, &salt, rounds, &mut key);
    Ok(key)
}

fn unsupported(what: &'static str, found: impl ToString, supported: &'static str) -> KeystoreError {
    KeystoreError::Unsupported { what, found: found.to_string(), supported }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::address;
    use serde_json::{Value, json};

    use super::*;

    /// The examples of the definition of Web3 Secret Storage: both have the same key and password.
    const SCRYPT: &str = r#"{"crypto": {"cipher": "aes-128-ctr",
        "cipherparams": {"iv": "83dbcc02d8ccb40e466191a123791e0e"},
        "ciphertext": "d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c",
        "kdf": "scrypt", "kdfparams": {"dklen": 32, "n": 262144, "p": 8, "r": 1,
            "salt": "ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19"},
        "mac": "2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097"}, "version": 3}"#;
    const PBKDF2: &str = r#"{"crypto": {"cipher": "aes-128-ctr",
        "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
        "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
        "kdf": "pbkdf2", "kdfparams": {"c": 262144, "dklen": 32, "prf": "hmac-sha256",
            "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"},
        "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"}, "version": 3}"#;
    const PASSWORD: &str = "testpassword";
    const ACCOUNT: Address = address!("0x008AeEda4D805471dF9b2A5B0f38A0C3bCBA786b");

    /// The example with parts replaced, by their JSON pointers.
    fn changed(example: &str, changes: &[(&str, Value)]) -> String {
        let mut json: Value = serde_json::from_str(example).unwrap();
        for (pointer, value) in changes {
            *json.pointer_mut(pointer).unwrap() = value.clone();
        }
        json.to_string()
    }

    fn error(json: &str, password: &str) -> KeystoreError {
        GasAdminKey::from_keystore(json, password).unwrap_err()
    }

    #[test]
    fn published_examples_are_decrypted() {
        let expected: GasAdminKey =
            "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d".parse().unwrap();
        assert_eq!(expected.address(), ACCOUNT);
        for example in [SCRYPT, PBKDF2] {
            let key = GasAdminKey::from_keystore(example, PASSWORD).unwrap();
            assert_eq!(key.address(), ACCOUNT);
            let old_name = example.replace("\"crypto\"", "\"Crypto\"");
            assert_eq!(GasAdminKey::from_keystore(&old_name, PASSWORD).unwrap().address(), ACCOUNT);
        }
    }

    #[test]
    fn wrong_password_is_refused_without_being_shown() {
        for password in ["", "testpassword\n", "Testpassword"] {
            let error = error(PBKDF2, password);
            assert_eq!(error, KeystoreError::Password);
            assert!(!error.to_string().contains("estpassword"), "{error}");
        }
    }

    #[test]
    fn damaged_file_is_refused() {
        let other = json!("00".repeat(32));
        for pointer in ["/crypto/ciphertext", "/crypto/mac", "/crypto/kdfparams/salt"] {
            let json = changed(PBKDF2, &[(pointer, other.clone())]);
            assert_eq!(error(&json, PASSWORD), KeystoreError::Password, "{pointer}");
        }
        for (json, part) in [
            ("{}".to_owned(), "line 1"),
            ("ac0974be".to_owned(), "line 1"),
            (changed(PBKDF2, &[("/crypto/mac", json!("x"))]), "mac is not in hex"),
            (changed(PBKDF2, &[("/crypto/cipherparams/iv", json!("00"))]), "iv has not 16 bytes"),
            (changed(PBKDF2, &[("/crypto/kdfparams/c", json!(0))]), "lacks c"),
            (
                changed(SCRYPT, &[("/crypto/kdfparams/n", json!(3))]),
                "not valid parameters of scrypt",
            ),
            (
                changed(SCRYPT, &[("/crypto/kdfparams/p", json!(0))]),
                "not valid parameters of scrypt",
            ),
        ] {
            let error = error(&json, PASSWORD);
            assert!(matches!(error, KeystoreError::Format(_)), "{error:?}");
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn unsupported_kinds_are_named() {
        for (pointer, value, part) in [
            ("/version", json!(1), "version \"1\""),
            ("/crypto/kdf", json!("argon2"), "kdf \"argon2\""),
            ("/crypto/cipher", json!("aes-128-cbc"), "cipher \"aes-128-cbc\""),
            ("/crypto/kdfparams/prf", json!("hmac-md5"), "prf \"hmac-md5\""),
            ("/crypto/kdfparams/dklen", json!(16), "dklen \"16\""),
        ] {
            let error = error(&changed(PBKDF2, &[(pointer, value)]), PASSWORD).to_string();
            assert!(error.contains(part) && error.contains("not supported"), "{error}");
        }
    }

    #[test]
    fn key_derivation_that_needs_too_much_is_refused() {
        for (example, pointer, value) in [
            (SCRYPT, "/crypto/kdfparams/n", json!(1_u64 << 40)),
            (SCRYPT, "/crypto/kdfparams/r", json!(u32::MAX)),
            (SCRYPT, "/crypto/kdfparams/p", json!(u32::MAX)),
            (PBKDF2, "/crypto/kdfparams/c", json!(u32::MAX)),
        ] {
            let error = error(&changed(example, &[(pointer, value)]), PASSWORD);
            assert!(matches!(error, KeystoreError::TooCostly(_)), "{error:?}");
        }
    }

    #[test]
    fn address_of_the_file_is_checked() {
        let with_address = |address: &str| {
            let mut json: Value = serde_json::from_str(PBKDF2).unwrap();
            json["address"] = json!(address);
            GasAdminKey::from_keystore(&json.to_string(), PASSWORD).map(|key| key.address())
        };
        assert_eq!(with_address("008aeeda4d805471df9b2a5b0f38a0c3bcba786b"), Ok(ACCOUNT));
        assert_eq!(with_address(&ACCOUNT.to_string()), Ok(ACCOUNT));
        assert_eq!(with_address(""), Ok(ACCOUNT));
        let error = with_address(&"00".repeat(20)).unwrap_err();
        assert!(error.to_string().contains("says that it has the key of 0000"), "{error}");
    }
}
