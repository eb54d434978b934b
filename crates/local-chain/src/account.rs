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

/// The accounts that anvil wrote to a file at its start.
pub(crate) fn read_accounts(path: &Path) -> io::Result<Vec<Account>> {
    let json: Value = serde_json::from_slice(&fs::read(path)?)?;
    let texts = |name: &str| {
        let values = json[name].as_array().into_iter().flatten();
        values.filter_map(Value::as_str).map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let pairs = texts("available_accounts").into_iter().zip(texts("private_keys"));
    Ok(pairs.map(|(address, secret_key)| Account { address, secret_key }).collect())
}

/// The accounts that hardhat printed at its start.
pub(crate) fn printed_accounts(log: &str) -> Vec<Account> {
    let values = |prefix: &'static str| {
        log.lines().filter_map(move |line| line.strip_prefix(prefix)).map(str::trim)
    };
    let addresses = values("Account #").filter_map(|line| line.split_whitespace().nth(1));
    addresses
        .zip(values("Private Key: "))
        .map(|(address, key)| Account {
            address: address.to_lowercase(),
            secret_key: key.to_lowercase(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_accounts_are_read() {
        let log = "Accounts\n\nAccount #0: 0xABc1 (10000 ETH)\nPrivate Key: 0x0a\n\n\
                   Account #1: 0xd2 (10000 ETH)\nPrivate Key: 0x0b\n";
        let account = |address: &str, secret_key: &str| Account {
            address: address.to_owned(),
            secret_key: secret_key.to_owned(),
        };
        assert_eq!(printed_accounts(log), [account("0xabc1", "0x0a"), account("0xd2", "0x0b")]);
    }
}
