//! How the values of settings are parsed.

use std::{num::NonZero, path::PathBuf, time::Duration};

use grid_batch_api::{HealthAccess, HostName, Network, ServicePattern, SignerPattern, WebOrigin};
use grid_batch_core::{AfterInvalid, ServiceId, ServiceScopeId, Strategy};
use grid_batch_http::{HttpError, join};
use grid_batch_scabbard::PeerService;
use grid_batch_store::DatabaseUrl;
use grid_batch_support::Authority;
use grid_batch_webhooks::AllowedNetwork;

use super::secret::{NOT_SHOWN, may_hold_secret};

/// The value of a setting. The error of `parse` is the rule that the text breaks.
pub(super) trait SettingValue: Sized {
    fn parse(text: &str) -> Result<Self, String>;

    /// The text for an error message, without secrets.
    fn redacted(text: &str) -> String {
        match may_hold_secret(text) {
            true => NOT_SHOWN.to_owned(),
            false => format!("{text:?}"),
        }
    }
}

impl SettingValue for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl SettingValue for bool {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "it must be true or false".to_owned())
    }
}

impl SettingValue for u32 {
    fn parse(text: &str) -> Result<Self, String> {
        let maximum = Self::MAX;
        text.parse().map_err(|_| format!("it must be a number from 0 to {maximum}"))
    }
}

macro_rules! impl_for_non_zero {
    ($($type:ty),+) => {$(
        impl SettingValue for NonZero<$type> {
            fn parse(text: &str) -> Result<Self, String> {
                let maximum = <$type>::MAX;
                text.parse().map_err(|_| format!("it must be a number from 1 to {maximum}"))
            }
        }
    )+};
}

impl_for_non_zero!(u16, u32, u64, usize);

impl SettingValue for Duration {
    fn parse(text: &str) -> Result<Self, String> {
        const SHORTEST: Duration = Duration::from_millis(1);
        // Sums of times do not overflow.
        const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
        match humantime::parse_duration(text) {
            Ok(duration) if duration > LONGEST => {
                Err("it must be at most 10 years, 87600h".to_owned())
            }
            Ok(duration) if duration >= SHORTEST => Ok(duration),
            Ok(duration) if !duration.is_zero() => Err("it must be at least 1ms".to_owned()),
            _ => {
                Err("it must be a number with a unit, and not zero, such as \"500ms\", \"2s\" or \
                      \"1h\""
                    .to_owned())
            }
        }
    }
}

impl SettingValue for Option<Duration> {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(None);
        }
        Duration::parse(text).map(Some).map_err(|rule| format!("it must be empty, or {rule}"))
    }
}

impl SettingValue for Option<NonZero<u64>> {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(None);
        }
        NonZero::parse(text).map(Some).map_err(|rule| format!("it must be empty, or {rule}"))
    }
}

/// A time that may be zero.
pub(super) struct DurationOrZero(pub(super) Duration);

impl SettingValue for DurationOrZero {
    fn parse(text: &str) -> Result<Self, String> {
        match humantime::parse_duration(text) {
            Ok(Duration::ZERO) => Ok(Self(Duration::ZERO)),
            _ => Duration::parse(text).map(Self),
        }
    }
}

/// The path of a file.
pub(super) struct FilePath(pub(super) Option<PathBuf>);

impl SettingValue for FilePath {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self(None)),
            text if text.contains("://") || looks_like_key(text) => {
                Err("it must be the path of a file".to_owned())
            }
            text => Ok(Self(Some(PathBuf::from(text)))),
        }
    }
}

impl SettingValue for DatabaseUrl {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: grid_batch_store::UrlError| error.to_string())
    }

    /// The text may contain a password.
    fn redacted(_: &str) -> String {
        NOT_SHOWN.to_owned()
    }
}

impl SettingValue for Strategy {
    fn parse(text: &str) -> Result<Self, String> {
        let strategy = Self::ALL.into_iter().find(|strategy| strategy.as_str() == text);
        strategy.ok_or_else(|| "it must be \"serial\", \"parallel\" or \"pipeline\"".to_owned())
    }
}

impl SettingValue for Option<Strategy> {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(None),
            _ => Strategy::parse(text).map(Some),
        }
    }
}

impl SettingValue for AfterInvalid {
    fn parse(text: &str) -> Result<Self, String> {
        let policy = Self::ALL.into_iter().find(|policy| policy.as_str() == text);
        policy.ok_or_else(|| "it must be \"continue\" or \"halt\"".to_owned())
    }
}

/// A value for a single service.
pub(super) struct OfService<T>(pub(super) ServiceId, pub(super) T);

impl<T: SettingValue> SettingValue for OfService<T> {
    fn parse(text: &str) -> Result<Self, String> {
        let item = || "each item must be SERVICE=VALUE".to_owned();
        let (service, value) = text.rsplit_once('=').ok_or_else(item)?;
        let service = ServiceId::parse(service.trim());
        let service = service.map_err(|rule| format!("{}; {rule}", item()))?;
        let value = T::parse(value.trim());
        let value = value
            .map_err(|rule| format!("{}; {}", item(), rule.replace("it must", "the value must")))?;
        Ok(Self(service, value))
    }
}

/// The URL of a ledger's node.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct NodeUrl(pub(super) String);

impl SettingValue for NodeUrl {
    fn parse(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let Some(rest) = rest else {
            return Err("a URL must begin with http:// or https://".to_owned());
        };
        let authority = Authority::parse(rest).map_err(|error| error.to_string())?;
        match authority.hosts.as_slice() {
            [host] if !host.is_empty() => {}
            _ => return Err("a URL must have a host, such as http://node:8008".to_owned()),
        }
        if authority.rest.contains(['?', '#']) {
            return Err("a URL of a node must have no ? or #".to_owned());
        }
        // The message does not show the URL, which may have a password.
        join(text, "").map_err(|error| match error {
            HttpError::InvalidRequest(reason) => reason,
            error => error.to_string(),
        })?;
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }

    /// What does not look like a URL, or has more than one `@`, may be a part of a password.
    fn redacted(text: &str) -> String {
        let is_url =
            ["http://", "https://", "ftp://", "ws://"].iter().any(|part| text.contains(part));
        let is_shown = is_url && text.matches('@').count() <= 1;
        match is_shown && !may_hold_secret(text) {
            true => format!("{text:?}"),
            false => NOT_SHOWN.to_owned(),
        }
    }
}

/// A service on a node of its own.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ServiceUrl(pub(super) ServiceScopeId, pub(super) String);

impl SettingValue for ServiceUrl {
    fn parse(text: &str) -> Result<Self, String> {
        let Some((service, url)) = text.split_once('=') else {
            return Err("each item must be SERVICE=URL".to_owned());
        };
        let service = parse_service(service.trim())?;
        Ok(Self(service, NodeUrl::parse(url.trim())?.0))
    }

    fn redacted(text: &str) -> String {
        NodeUrl::redacted(text)
    }
}

/// The error does not repeat the text, which may be a part of a URL with a password.
fn parse_service(text: &str) -> Result<ServiceScopeId, String> {
    text.parse().map_err(|_| {
        "a service must be circuit::service, both of ASCII letters, digits, '-' and '_'".to_owned()
    })
}

/// A service at another node of its circuit.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Peer(pub(super) PeerService);

impl Peer {
    const RULE: &str = "each item must be SERVICE=ID@URL, where ID is the service's id at the other \
                        node, such as \"abcde-01234::gsAA=gsBB@http://beta:8085\"";
}

impl SettingValue for Peer {
    fn parse(text: &str) -> Result<Self, String> {
        let rule = || Self::RULE.to_owned();
        let (service, peer) = text.split_once('=').ok_or_else(rule)?;
        let (id, url) = peer.split_once('@').ok_or_else(rule)?;
        let service: ServiceScopeId = parse_service(service.trim())?;
        let peer = parse_service(&format!("{}::{}", service.circuit(), id.trim()))?;
        if peer == service {
            return Err(format!("{service} is its own peer; {}", Self::RULE));
        }
        let url = NodeUrl::parse(url.trim())?.0;
        Ok(Self(PeerService { service, peer, url }))
    }

    fn redacted(text: &str) -> String {
        NodeUrl::redacted(text)
    }
}

/// `LEFT=RIGHT`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pair(pub(super) String, pub(super) String);

impl SettingValue for Pair {
    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=').map(|(left, right)| (left.trim(), right.trim())) {
            Some((left, right)) if !left.is_empty() && !right.is_empty() => {
                Ok(Self(left.to_owned(), right.to_owned()))
            }
            _ => Err("each item must be two texts with = between them".to_owned()),
        }
    }
}

/// Whether the text is a secret key instead of its location.
pub(super) fn looks_like_key(text: &str) -> bool {
    let digits = text.strip_prefix("env:").unwrap_or(text);
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// The URL of an oracle, if there is one.
pub(super) struct OracleUrl(pub(super) Option<String>);

impl SettingValue for OracleUrl {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self(None)),
            _ if text.starts_with("http://") || text.starts_with("https://") => {
                Ok(Self(Some(text.to_owned())))
            }
            _ => Err("a URL must begin with http:// or https://".to_owned()),
        }
    }

    /// The text may contain an API key.
    fn redacted(_: &str) -> String {
        NOT_SHOWN.to_owned()
    }
}

impl SettingValue for ServiceId {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{error}"))
    }
}

macro_rules! impl_by_from_str {
    ($($type:ty),+ $(,)?) => {$(
        impl SettingValue for $type {
            fn parse(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error| format!("{error}"))
            }
        }
    )+};
}

impl_by_from_str!(
    HealthAccess,
    HostName,
    Network,
    WebOrigin,
    ServicePattern,
    SignerPattern,
    AllowedNetwork,
);

impl<T: SettingValue> SettingValue for Vec<T> {
    fn parse(text: &str) -> Result<Self, String> {
        let items: Vec<&str> =
            text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
        let parse = |(at, item): (usize, &&str)| {
            T::parse(item).map_err(|rule| match items.len() {
                1 => rule,
                _ => format!("item {}: {rule}", at + 1),
            })
        };
        items.iter().enumerate().map(parse).collect()
    }

    /// Nothing is shown if any item may hold a secret: a comma in a password makes two items of it.
    fn redacted(text: &str) -> String {
        let items: Vec<String> = text.split(',').map(|item| T::redacted(item.trim())).collect();
        match may_hold_secret(text) || items.iter().any(|item| item == NOT_SHOWN) {
            true => NOT_SHOWN.to_owned(),
            false => format!("[{}]", items.join(", ")),
        }
    }
}
