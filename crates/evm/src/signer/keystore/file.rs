use serde::Deserialize;

use super::error::KeystoreError;

/// The parts of a keystore file that are used.
#[derive(Deserialize)]
pub(super) struct Keystore {
    #[serde(alias = "Crypto")]
    pub(super) crypto: Crypto,
    version: u32,
    /// The account, in hex. Some programs leave it out.
    pub(super) address: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Crypto {
    pub(super) cipher: String,
    pub(super) cipherparams: CipherParameters,
    pub(super) ciphertext: String,
    pub(super) kdf: String,
    pub(super) kdfparams: KdfParameters,
    pub(super) mac: String,
}

#[derive(Deserialize)]
pub(super) struct CipherParameters {
    pub(super) iv: String,
}

/// The parameters of both key derivations: of scrypt `n`, `r` and `p`, of PBKDF2 `c` and `prf`.
#[derive(Deserialize)]
pub(super) struct KdfParameters {
    pub(super) salt: String,
    pub(super) dklen: u32,
    pub(super) n: Option<u64>,
    pub(super) r: Option<u32>,
    pub(super) p: Option<u32>,
    pub(super) c: Option<u32>,
    pub(super) prf: Option<String>,
}

impl Keystore {
    const VERSION: u32 = 3;

    pub(super) fn parse(json: &str) -> Result<Self, KeystoreError> {
        let keystore: Self = serde_json::from_str(json).map_err(|error| {
            // The whole text of an error of serde may show a value.
            KeystoreError::Format(format!("line {}, column {}", error.line(), error.column()))
        })?;
        match keystore.version {
            Self::VERSION => Ok(keystore),
            found => Err(KeystoreError::Unsupported {
                what: "version",
                found: found.to_string(),
                supported: "version 3",
            }),
        }
    }
}

/// The bytes of a field in hex.
pub(super) fn bytes(field: &'static str, hex: &str) -> Result<Vec<u8>, KeystoreError> {
    let digits = hex.strip_prefix("0x").unwrap_or(hex);
    base16ct::mixed::decode_vec(digits)
        .map_err(|_| KeystoreError::Format(format!("{field} is not in hex")))
}
