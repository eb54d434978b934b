use std::{fmt, str::FromStr};

use crate::Wildcard;
use grid_batch_core::{Excerpt, ServiceId, ServiceIdError};
use thiserror::Error;

/// A pattern for service ids: a service id in which each `*` stands for any number of characters, including none.
///
/// ```
/// use grid_batch_support::ServicePattern;
///
/// let pattern: ServicePattern = "abcDE-*::gs*".parse()?;
/// assert!(pattern.matches(&"abcDE-F0123::gsAA".parse()?));
/// assert!(!pattern.matches(&"other-F0123::gsAA".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePattern(Wildcard);

/// Why a text is not a [`ServicePattern`]: no service id has this form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the pattern {value} matches no service id; write a service id, or part of one and *")]
pub struct ServicePatternError {
    /// The beginning of the text.
    pub value: Excerpt,
    /// The rule for service ids that the text breaks.
    #[source]
    pub cause: ServiceIdError,
}

impl ServicePattern {
    /// Whether the service id has this form.
    pub fn matches(&self, service_id: &ServiceId) -> bool {
        self.0.matches(service_id.as_str())
    }
}

impl FromStr for ServicePattern {
    type Err = ServicePatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |cause| ServicePatternError { value: Excerpt::of(text), cause };
        text.parse::<ServiceId>().map_err(error)?;
        Ok(Self(Wildcard::new(text)))
    }
}

impl fmt::Display for ServicePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_is_a_service_id_with_stars() {
        for text in ["global", "*", "abcDE-*::gs*"] {
            assert_eq!(text.parse::<ServicePattern>().map(|p| p.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "two words", "a\u{200b}*"] {
            assert!(text.parse::<ServicePattern>().is_err(), "{text:?}");
        }
    }
}
