//! How the values of settings are parsed.

use std::{num::NonZero, path::PathBuf, time::Duration};

use grid_batch_http::{HttpError, join};
use grid_batch_support::Authority;

use crate::{NOT_SHOWN, may_hold_secret};

/// The value of a setting. The error of `parse` is the rule that the text breaks.
pub trait SettingValue: Sized {
    /// Reads the text.
    fn parse(text: &str) -> Result<Self, String>;

    /// The text for an error message, without secrets.
    fn redacted(text: &str) -> String {
        if may_hold_secret(text) { NOT_SHOWN.to_owned() } else { format!("{text:?}") }
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

macro_rules! impl_for_numbers {
    ($($type:ty),+) => {$(
        impl SettingValue for $type {
            fn parse(text: &str) -> Result<Self, String> {
                let (minimum, maximum) = (Self::MIN, Self::MAX);
                text.parse().map_err(|_| format!("it must be a number from {minimum} to {maximum}"))
            }
        }
    )+};
}

impl_for_numbers!(u16, u32, u64, usize, NonZero<u16>, NonZero<u32>, NonZero<u64>, NonZero<usize>);

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

impl SettingValue for Option<String> {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurationOrZero(pub Duration);

impl SettingValue for DurationOrZero {
    fn parse(text: &str) -> Result<Self, String> {
        match humantime::parse_duration(text) {
            Ok(Duration::ZERO) => Ok(Self(Duration::ZERO)),
            _ => Duration::parse(text).map(Self),
        }
    }
}

/// The path of a file; empty for none.
impl SettingValue for Option<PathBuf> {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(None),
            text if text.contains("://") || looks_like_key(text) => {
                Err("it must be the path of a file".to_owned())
            }
            text => Ok(Some(PathBuf::from(text))),
        }
    }
}

/// The permissions of a file, in octal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(pub u32);

impl SettingValue for FileMode {
    fn parse(text: &str) -> Result<Self, String> {
        let mode =
            u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777 && text.len() <= 4);
        mode.map(Self).ok_or_else(|| "it must be octal digits, such as \"0600\"".to_owned())
    }
}

/// The URL of a ledger's node.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeUrl(pub String);

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
        if is_shown && !may_hold_secret(text) { format!("{text:?}") } else { NOT_SHOWN.to_owned() }
    }
}

/// Whether the text is a secret key instead of its location.
pub fn looks_like_key(text: &str) -> bool {
    let digits = text.strip_prefix("env:").unwrap_or(text);
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

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
        if may_hold_secret(text) || items.iter().any(|item| item == NOT_SHOWN) {
            NOT_SHOWN.to_owned()
        } else {
            format!("[{}]", items.join(", "))
        }
    }
}
