use std::{fmt, str::FromStr};

use grid_batch_core::{ServiceId, ServiceIdError};

/// A service, or several: in a pattern, `*` stands for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) enum ServicePattern {
    One(ServiceId),
    Several(String),
}

impl ServicePattern {
    pub(in crate::commands) fn matches(&self, service: &ServiceId) -> bool {
        match self {
            Self::One(id) => id == service,
            Self::Several(pattern) => matches(pattern, service.as_str()),
        }
    }

    /// The service, if it is only one.
    pub(in crate::commands) fn one(&self) -> Option<&ServiceId> {
        match self {
            Self::One(id) => Some(id),
            Self::Several(_) => None,
        }
    }
}

impl FromStr for ServicePattern {
    type Err = ServiceIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.contains('*') {
            true => Self::Several(text.to_owned()),
            false => Self::One(text.parse()?),
        })
    }
}

impl fmt::Display for ServicePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(id) => id.fmt(f),
            Self::Several(pattern) => f.write_str(pattern),
        }
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let (first, last) = (parts.next().unwrap_or(""), parts.next_back());
    let Some(last) = last else { return pattern == text };
    let Some(rest) = text.strip_prefix(first) else { return false };
    let Some(mut rest) = rest.strip_suffix(last) else { return false };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_stands_for_any_characters() {
        for (pattern, text, expected) in [
            ("a::b", "a::b", true),
            ("a::b", "a::bc", false),
            ("*", "a::b", true),
            ("a::*", "a::b", true),
            ("a::*", "b::a::", false),
            ("*::b", "a::b", true),
            ("*::b", "a::bb", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acbc", true),
            ("a*b*c", "ac", false),
            ("ab*ba", "aba", false),
            ("**", "x", true),
        ] {
            let pattern: ServicePattern = pattern.parse().unwrap();
            assert_eq!(pattern.matches(&text.parse().unwrap()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn text_without_a_star_is_a_service_id() {
        assert!("two words".parse::<ServicePattern>().is_err());
        let one: ServicePattern = "a::b".parse().unwrap();
        assert_eq!(one.one().map(ServiceId::as_str), Some("a::b"));
    }
}
