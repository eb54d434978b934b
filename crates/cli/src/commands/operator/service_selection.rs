use std::{fmt, str::FromStr};

use grid_batch_core::{ServiceId, ServiceIdError};
use grid_batch_support::Wildcard;
use serde_json::Value;

/// A service, or several: in a pattern, `*` stands for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) enum ServiceSelection {
    One(ServiceId),
    Several(Wildcard),
}

impl ServiceSelection {
    pub(in crate::commands) fn matches(&self, service: &ServiceId) -> bool {
        match self {
            Self::One(id) => id == service,
            Self::Several(pattern) => pattern.matches(service.as_str()),
        }
    }

    /// Whether the service of a batch, as the interface shows it, is one of them.
    pub(in crate::commands) fn is_of(&self, batch: &Value) -> bool {
        let service = batch["service_id"].as_str().and_then(|service| service.parse().ok());
        service.is_some_and(|service| self.matches(&service))
    }

    /// The service, if it is only one.
    pub(in crate::commands) fn one(&self) -> Option<&ServiceId> {
        match self {
            Self::One(id) => Some(id),
            Self::Several(_) => None,
        }
    }
}

impl FromStr for ServiceSelection {
    type Err = ServiceIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text.contains('*') {
            Self::Several(Wildcard::new(text))
        } else {
            Self::One(text.parse()?)
        })
    }
}

impl fmt::Display for ServiceSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(id) => id.fmt(f),
            Self::Several(pattern) => pattern.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_selects_several_services() {
        let selection: ServiceSelection = "a::*".parse().unwrap();
        assert!(selection.matches(&"a::b".parse().unwrap()));
        assert!(!selection.matches(&"b::a".parse().unwrap()));
        assert_eq!(selection.one(), None);
        assert_eq!(selection.to_string(), "a::*");
    }

    #[test]
    fn text_without_a_star_is_a_service_id() {
        assert!("two words".parse::<ServiceSelection>().is_err());
        let one: ServiceSelection = "a::b".parse().unwrap();
        assert_eq!(one.one().map(ServiceId::as_str), Some("a::b"));
    }
}
