use pbkdf2::pbkdf2_hmac;
use scrypt::{Params, scrypt};
use sha2::Sha256;

use super::{
    error::KeystoreError,
    file::{Crypto, KdfParameters, bytes},
};

/// The derived key: its first half decrypts, its second half authenticates.
pub(super) type DerivedKey = [u8; 32];

/// What scrypt may use. Keystores use 256 MiB at most by default.
const MEMORY_LIMIT: u64 = 1 << 30;
/// What scrypt may compute: the product of its three parameters, which is 2^21 by default.
const WORK_LIMIT: u64 = 1 << 26;
/// How often PBKDF2 may repeat its function, which is 262,144 times by default.
const ROUND_LIMIT: u32 = 100_000_000;

/// Derives the key from the password, as the keystore says.
pub(super) fn derive_key(crypto: &Crypto, password: &str) -> Result<DerivedKey, KeystoreError> {
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
