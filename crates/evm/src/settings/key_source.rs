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
    /// In AWS KMS.
    AwsKms {
        /// The account's address.
        account: String,
        /// The id, ARN or alias of the key.
        key: String,
    },
    /// In Google Cloud KMS.
    GcpKms {
        /// The account's address.
        account: String,
        /// The resource name of the key's version.
        key: String,
    },
}

/// Hides the password of a signer.
impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Variable(name) => f.debug_tuple("Variable").field(name).finish(),
            Self::Keystore(path) => f.debug_tuple("Keystore").field(path).finish(),
            Self::Remote { account, url } => write!(f, "Remote({account}@{})", redact_url(url)),
            Self::AwsKms { account, key } => write!(f, "AwsKms({account}@{key})"),
            Self::GcpKms { account, key } => write!(f, "GcpKms({account}@{key})"),
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
        match text.split_once(':') {
            Some(("env", variable)) => variable_name(variable).map(Self::Variable),
            Some(("keystore", "")) => {
                Err("keystore: must be followed by the path of a keystore file".to_owned())
            }
            Some(("keystore", file)) => Ok(Self::Keystore(file.into())),
            Some(("remote", rest)) => {
                let example = "remote:ADDRESS@URL, such as \"remote:0x…@https://signer:9000\"";
                let (account, url) = account_and_place(rest, example)?;
                Ok(Self::Remote { account, url: NodeUrl::parse(&url)?.0 })
            }
            Some(("aws-kms", rest)) => {
                let (account, key) = account_and_place(rest, "aws-kms:ADDRESS@KEY")?;
                Ok(Self::AwsKms { account, key })
            }
            Some(("gcp-kms", rest)) => {
                let (account, key) = account_and_place(rest, "gcp-kms:ADDRESS@KEY")?;
                Ok(Self::GcpKms { account, key })
            }
            _ => Ok(Self::File(text.into())),
        }
    }

    /// Hides a key that was given by mistake instead of its file name, and the password of a URL.
    fn redacted(text: &str) -> String {
        let has_secret = text.contains("://") && may_hold_secret(text);
        if looks_like_key(text) || has_secret { NOT_SHOWN.to_owned() } else { format!("{text:?}") }
    }
}

/// The parts around the first `@`: the address of an account, and where its key is.
fn account_and_place(text: &str, form: &str) -> Result<(String, String), String> {
    match text.split_once('@') {
        Some((account, place)) if !account.is_empty() && !place.is_empty() => {
            Ok((account.to_owned(), place.to_owned()))
        }
        _ => Err(format!("it must have the form {form}")),
    }
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
            (
                "aws-kms:0x12@arn:aws:kms:k",
                KeySource::AwsKms { account: "0x12".to_owned(), key: "arn:aws:kms:k".to_owned() },
            ),
            (
                "gcp-kms:0x12@projects/p",
                KeySource::GcpKms { account: "0x12".to_owned(), key: "projects/p".to_owned() },
            ),
        ] {
            assert_eq!(KeySource::parse(text), Ok(expected), "{text}");
        }
        for (text, part) in [
            ("env:", "name of a variable"),
            ("keystore:", "path of a keystore"),
            ("remote:https://h", "ADDRESS@URL"),
            ("remote:@https://h", "ADDRESS@URL"),
            ("remote:0x12@h", "http:// or https://"),
            ("aws-kms:alias/admin", "aws-kms:ADDRESS@KEY"),
            ("gcp-kms:0x12@", "gcp-kms:ADDRESS@KEY"),
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
