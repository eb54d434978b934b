use std::{fmt, str::FromStr, sync::Arc};

use thiserror::Error;

use crate::excerpt::Excerpt;

/// The name of a service. Batches are ordered within a service, and one instance at a time works on it.
///
/// Any printable text without spaces, up to 128 bytes, so that it can name a Scabbard service, a
/// whole ledger, or an account of an EVM chain. [`ScopeId`](crate::ScopeId) is what the text means
/// to an adapter. Cheap to clone.
///
/// ```
/// use grid_batch_core::ServiceId;
///
/// let service: ServiceId = "abcDE-F0123::gsAA".parse()?;
/// assert_eq!(service.as_str(), "abcDE-F0123::gsAA");
/// assert!("two words".parse::<ServiceId>().is_err());
/// # Ok::<(), grid_batch_core::ServiceIdError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(Arc<str>);

/// Why a text is not a [`ServiceId`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ServiceIdError {
    /// The text is empty.
    #[error("the service id is empty; it names the service that orders the batch")]
    Empty,
    /// The text has more than [`ServiceId::MAX_BYTES`] bytes.
    #[error(
        "the service id {value} has {bytes} bytes; at most {} are allowed",
        ServiceId::MAX_BYTES
    )]
    TooLong {
        /// The beginning of the text.
        value: Excerpt,
        /// How many bytes it has.
        bytes: usize,
    },
    /// The text has a space or a control character.
    #[error(
        "the service id {value} has {character:?}; spaces and control characters are not allowed"
    )]
    Character {
        /// The beginning of the text.
        value: Excerpt,
        /// The first character that is not allowed.
        character: char,
    },
}

impl ServiceId {
    /// The longest service id, in bytes of UTF-8.
    pub const MAX_BYTES: usize = 128;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Besides spaces and control characters, this includes invisible characters, because two ids that look the same must
/// be the same, and no id may reverse the text of a log line.
fn is_unprintable(character: char) -> bool {
    character.is_whitespace()
        || character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        )
}

impl FromStr for ServiceId {
    type Err = ServiceIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let value = || Excerpt::of(text);
        if text.is_empty() {
            return Err(ServiceIdError::Empty);
        }
        if text.len() > Self::MAX_BYTES {
            return Err(ServiceIdError::TooLong { value: value(), bytes: text.len() });
        }
        match text.chars().find(|c| is_unprintable(*c)) {
            Some(character) => Err(ServiceIdError::Character { value: value(), character }),
            None => Ok(Self(text.into())),
        }
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceId({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_a_service_id_or_an_error(text in any::<String>()) {
            match text.parse::<ServiceId>() {
                Ok(service) => prop_assert_eq!(service.as_str(), text),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn letters_of_any_alphabet_are_allowed() {
        assert!("дом::кот".parse::<ServiceId>().is_ok());
    }

    #[test]
    fn spaces_and_invisible_characters_are_refused() {
        for text in ["a\0b", "a\nb", "a b", "a\u{2028}b", "a\u{200b}b", "a\u{202e}b"] {
            let error = text.parse::<ServiceId>().unwrap_err();
            assert!(matches!(error, ServiceIdError::Character { .. }), "{text:?}: {error}");
        }
    }

    #[test]
    fn longest_id_has_128_bytes() {
        assert!("x".repeat(128).parse::<ServiceId>().is_ok());
        let error = "x".repeat(129).parse::<ServiceId>().unwrap_err();
        assert!(error.to_string().contains("129 bytes; at most 128"), "{error}");
    }
}
