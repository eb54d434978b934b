//! Where the keys of gas admins are.

use std::{fmt, path::PathBuf};

use grid_batch_settings::{NOT_SHOWN, NodeUrl, SettingValue, looks_like_key, may_hold_secret};
use grid_batch_support::redact_url;

/// Where the secret key of a gas admin is.
#[derive(Clone, PartialEq, Eq)]
pub enum KeySource {
    /// In a file.
    File(PathBuf),
    /// In an environment variable.
    Variable(String),
    /// In a keystore file, encrypted with a password.
    Keystore(PathBuf),
    /// At a remote signer.
    Remote {
        /// The account's address.
        account: String,
        /// The URL of the signer, which may have a password.
        url: String,
    },
}

/// Hides the password of a signer.
impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Variable(name) => f.debug_tuple("Variable").field(name).finish(),
            Self::Keystore(path) => f.debug_tuple("Keystore").field(path).finish(),
            Self::Remote { account, url } => {
                let url = redact_url(url);
                f.debug_struct("Remote").field("account", account).field("url", &url).finish()
            }
        }
    }
}

/// Where the password of a keystore is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordSource {
    /// In a file.
    File(PathBuf),
    /// In an environment variable.
    Variable(String),
}

impl SettingValue for KeySource {
    fn parse(text: &str) -> Result<Self, String> {
        if looks_like_key(text) {
            return Err("a key must be in a file or in a variable, not in a setting".to_owned());
        }
        if let Some(variable) = text.strip_prefix("env:") {
            return variable_name(variable).map(Self::Variable);
        }
        if let Some(file) = text.strip_prefix("keystore:") {
            return match file {
                "" => Err("keystore: must be followed by the path of a keystore file".to_owned()),
                file => Ok(Self::Keystore(file.into())),
            };
        }
        match text.strip_prefix("remote:") {
            Some(remote) => parse_remote(remote),
            None => Ok(Self::File(text.into())),
        }
    }

    /// Hides a key that was given by mistake instead of its file name, and the password of a URL.
    fn redacted(text: &str) -> String {
        let has_secret = text.contains("://") && may_hold_secret(text);
        if looks_like_key(text) || has_secret { NOT_SHOWN.to_owned() } else { format!("{text:?}") }
    }
}

fn parse_remote(text: &str) -> Result<KeySource, String> {
    let Some((account, url)) = text.split_once('@').filter(|(account, _)| !account.is_empty())
    else {
        return Err("remote: must be followed by ADDRESS@URL, such as \
                    \"remote:0x…@https://signer:9000\""
            .to_owned());
    };
    let url = NodeUrl::parse(url)?.0;
    Ok(KeySource::Remote { account: account.to_owned(), url })
}

impl SettingValue for PasswordSource {
    fn parse(text: &str) -> Result<Self, String> {
        match text.strip_prefix("env:") {
            Some(variable) => variable_name(variable).map(Self::Variable),
            None if text.contains('/') => Ok(Self::File(text.into())),
            // It may be the password itself.
            None => Err("a password must be in a file, whose path has a /, or in a variable, as \
                         env:VARIABLE"
                .to_owned()),
        }
    }

    /// The text may be the password itself.
    fn redacted(_: &str) -> String {
        NOT_SHOWN.to_owned()
    }
}

fn variable_name(text: &str) -> Result<String, String> {
    match text {
        "" => Err("env: must be followed by the name of a variable".to_owned()),
        variable => Ok(variable.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_keys_are_parsed() {
        let remote = |account: &str, url: &str| KeySource::Remote {
            account: account.to_owned(),
            url: url.to_owned(),
        };
        for (text, expected) in [
            ("/etc/a.key", KeySource::File("/etc/a.key".into())),
            ("env:KEY", KeySource::Variable("KEY".to_owned())),
            ("keystore:/etc/a.json", KeySource::Keystore("/etc/a.json".into())),
            ("remote:0x12@https://h:9000/", remote("0x12", "https://h:9000")),
            ("remote:0x12@http://u:p@h", remote("0x12", "http://u:p@h")),
        ] {
            assert_eq!(KeySource::parse(text), Ok(expected), "{text}");
        }
        for (text, part) in [
            ("env:", "name of a variable"),
            ("keystore:", "path of a keystore"),
            ("remote:https://h", "ADDRESS@URL"),
            ("remote:@https://h", "ADDRESS@URL"),
            ("remote:0x12@h", "http:// or https://"),
        ] {
            let error = KeySource::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn password_in_place_of_its_file_is_refused_and_not_shown() {
        assert!(PasswordSource::parse("hidden").is_err());
        assert!(!PasswordSource::redacted("hidden").contains("hidden"));
        assert_eq!(PasswordSource::parse("./a"), Ok(PasswordSource::File("./a".into())));
        let variable = PasswordSource::Variable("WORD".to_owned());
        assert_eq!(PasswordSource::parse("env:WORD"), Ok(variable));
    }

    #[test]
    fn secrets_of_gas_admins_are_not_shown() {
        let key = "5e".repeat(32);
        for text in [format!("0x{key}"), key.clone(), format!("env:{key}")] {
            assert!(!KeySource::redacted(&text).contains(&key), "{text}");
        }
        assert_eq!(KeySource::redacted("remote:0x12@http://u:hidden@h"), NOT_SHOWN);
        assert_eq!(KeySource::redacted("/etc/a.key"), "\"/etc/a.key\"");
    }
}
