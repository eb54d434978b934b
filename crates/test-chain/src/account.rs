use std::{fs, io, path::Path};

use serde_json::Value;

/// An account with a balance from the start. Its key is public: use it for tests only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// `0x` and 40 lower-case hex digits.
    pub address: String,
    /// `0x` and 64 lower-case hex digits.
    pub secret_key: String,
}

/// The accounts that a node wrote to a file at its start.
pub(crate) fn read_accounts(path: &Path) -> io::Result<Vec<Account>> {
    let json: Value = serde_json::from_slice(&fs::read(path)?)?;
    let texts = |name: &str| {
        let values = json[name].as_array().into_iter().flatten();
        values.filter_map(Value::as_str).map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let pairs = texts("available_accounts").into_iter().zip(texts("private_keys"));
    Ok(pairs.map(|(address, secret_key)| Account { address, secret_key }).collect())
}
