//! What a text must be like to be a value of a setting.

use std::{net::SocketAddr, num::NonZero, time::Duration};

use grid_batch_core::{ServiceId, ServiceScopeId};
use grid_batch_store::DatabaseUrl;

use crate::config::{KeySource, LedgerKind};

/// A value that is read from text. The error is the rule that the text breaks.
pub(super) trait Value: Sized {
    fn read(text: &str) -> Result<Self, String>;

    /// The text as it may be shown in an error.
    fn shown(text: &str) -> String {
        format!("{text:?}")
    }
}

impl Value for String {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Value for bool {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "it must be true or false".to_owned())
    }
}

macro_rules! number {
    ($($type:ty),+) => {$(
        impl Value for NonZero<$type> {
            fn read(text: &str) -> Result<Self, String> {
                let most = <$type>::MAX;
                text.parse().map_err(|_| format!("it must be a number from 1 to {most}"))
            }
        }
    )+};
}

number!(u16, u32, u64, usize);

impl Value for Duration {
    fn read(text: &str) -> Result<Self, String> {
        let rule =
            "a time is a number and a unit and not zero, such as \"500ms\", \"2s\" or \"1h\"";
        match humantime::parse_duration(text) {
            Ok(duration) if !duration.is_zero() => Ok(duration),
            _ => Err(rule.to_owned()),
        }
    }
}

impl Value for SocketAddr {
    fn read(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| "it must be an address and a port, such as \"127.0.0.1:8080\"".to_owned())
    }
}

impl Value for DatabaseUrl {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: grid_batch_store::UrlError| error.to_string())
    }

    /// It may hold a password.
    fn shown(_: &str) -> String {
        "no address of a database".to_owned()
    }
}

impl Value for Option<LedgerKind> {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(None),
            "sawtooth" => Ok(Some(LedgerKind::Sawtooth)),
            "scabbard" => Ok(Some(LedgerKind::Scabbard)),
            "evm" => Ok(Some(LedgerKind::Evm)),
            _ => Err("it must be \"sawtooth\", \"scabbard\" or \"evm\"".to_owned()),
        }
    }
}

/// The address of a ledger's node.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct NodeUrl(pub(super) String);

impl Value for NodeUrl {
    fn read(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        match rest {
            Some(rest)
                if !rest.is_empty()
                    && !rest.starts_with('/')
                    && !rest.contains(|c: char| c.is_whitespace() || "?#".contains(c)) =>
            {
                Ok(Self(text.trim_end_matches('/').to_owned()))
            }
            _ => {
                Err("an address begins with http:// or https://, and ends before any ? or #"
                    .to_owned())
            }
        }
    }

    /// It may hold a password.
    fn shown(text: &str) -> String {
        match text.split_once('@') {
            Some((_, host)) => format!("\"…@{host}\""),
            None => format!("{text:?}"),
        }
    }
}

/// A service that is at an address of its own.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ServiceUrl(pub(super) ServiceScopeId, pub(super) String);

impl Value for ServiceUrl {
    fn read(text: &str) -> Result<Self, String> {
        let Some((service, url)) = text.split_once('=') else {
            return Err("each must be SERVICE=URL".to_owned());
        };
        let service = service.trim().parse().map_err(|error| format!("{error}"))?;
        Ok(Self(service, NodeUrl::read(url.trim())?.0))
    }

    fn shown(text: &str) -> String {
        NodeUrl::shown(text)
    }
}

/// Two texts with a sign between them: what, and what of it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pair(pub(super) String, pub(super) String);

impl Value for Pair {
    fn read(text: &str) -> Result<Self, String> {
        match text.split_once('=').map(|(left, right)| (left.trim(), right.trim())) {
            Some((left, right)) if !left.is_empty() && !right.is_empty() => {
                Ok(Self(left.to_owned(), right.to_owned()))
            }
            _ => Err("each must be two texts with = between them".to_owned()),
        }
    }
}

/// Whether a key itself stands where its place is asked for.
pub(super) fn is_key(text: &str) -> bool {
    let digits = text.strip_prefix("env:").unwrap_or(text);
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

impl Value for KeySource {
    fn read(text: &str) -> Result<Self, String> {
        if is_key(text) {
            return Err("a key is in a file or in a variable, and not here".to_owned());
        }
        match text.strip_prefix("env:") {
            Some("") => Err("env: is followed by the name of a variable".to_owned()),
            Some(variable) => Ok(Self::Variable(variable.to_owned())),
            None => Ok(Self::File(text.into())),
        }
    }
}

/// The address of an oracle, or none.
pub(super) struct OracleUrl(pub(super) Option<String>);

impl Value for OracleUrl {
    fn read(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self(None)),
            _ if text.starts_with("http://") || text.starts_with("https://") => {
                Ok(Self(Some(text.to_owned())))
            }
            _ => Err("an address begins with http:// or https://".to_owned()),
        }
    }

    /// It may hold a key.
    fn shown(_: &str) -> String {
        "no address of an oracle".to_owned()
    }
}

impl Value for ServiceId {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{error}"))
    }
}

impl<T: Value> Value for Vec<T> {
    fn read(text: &str) -> Result<Self, String> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(T::read).collect()
    }

    fn shown(text: &str) -> String {
        let shown: Vec<String> = text.split(',').map(|item| T::shown(item.trim())).collect();
        format!("[{}]", shown.join(", "))
    }
}
