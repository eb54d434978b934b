use std::{fmt, str::FromStr};

use thiserror::Error;

use grid_batch_core::{Excerpt, ItemId};

/// The id of a batch or of a transaction of Sawtooth and Scabbard: its header's signature, 128 lower-case hex digits.
///
/// Upper case is refused, as a ledger would refuse it. A stored id may have another form:
/// `grid_batch_core::ItemId` has the id of any ledger, and every id of this type converts into it.
///
/// ```
/// use grid_batch_protocol::HeaderId;
///
/// let id: HeaderId = "5a".repeat(64).parse()?;
/// assert_eq!(id.as_bytes(), &[0x5a; 64]);
/// assert_eq!(id.to_string(), "5a".repeat(64));
/// assert!("5A".repeat(64).parse::<HeaderId>().is_err());
/// # Ok::<(), grid_batch_protocol::HeaderIdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HeaderId([u8; HeaderId::BYTES]);

/// Why a text is not a [`HeaderId`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderIdError {
    /// The text is too short or too long.
    #[error("the id {value} has {length} characters; an id has 128 lower-case hex digits")]
    TextLength {
        /// The beginning of the text.
        value: Excerpt,
        /// How many characters it has.
        length: usize,
    },
    /// A character is not one of `0-9a-f`.
    #[error("the id {value} has {character:?} at position {position}; an id has only 0-9 and a-f")]
    Character {
        /// The beginning of the text.
        value: Excerpt,
        /// The first invalid character.
        character: char,
        /// Its position, counted in characters from 0.
        position: usize,
    },
}

impl HeaderId {
    /// Length of the binary form.
    pub const BYTES: usize = 64;

    /// The id whose binary form this is.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The binary form.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl FromStr for HeaderId {
    type Err = HeaderIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(id) = text.parse::<ItemId>()
            && let Some(signature) = id.signature()
        {
            return Ok(Self(*signature));
        }
        let value = Excerpt::of(text);
        let is_digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
        match text.chars().enumerate().find(|(_, character)| !is_digit(*character)) {
            Some((position, character)) if text.len() == 2 * Self::BYTES => {
                Err(HeaderIdError::Character { value, character, position })
            }
            _ => Err(HeaderIdError::TextLength { value, length: text.chars().count() }),
        }
    }
}

impl From<HeaderId> for ItemId {
    fn from(id: HeaderId) -> Self {
        Self::from_bytes(id.0)
    }
}

impl fmt::Display for HeaderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ItemId::from(*self).fmt(f)
    }
}

impl fmt::Debug for HeaderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeaderId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_and_binary_form_round_trip(bytes in prop::array::uniform32(any::<[u8; 2]>())) {
            let bytes: [u8; 64] = bytes.concat().try_into().unwrap();
            let id = HeaderId::from_bytes(bytes);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert_eq!(grid_batch_core::ItemId::from(id).to_string(), id.to_string());
        }

        #[test]
        fn any_text_is_that_id_or_an_error(text in "[0-9a-f]{124,128}[0-9a-fA-Fé]{0,4}") {
            match text.parse::<HeaderId>() {
                Ok(id) => prop_assert_eq!(id.to_string(), text),
                Err(_) => {
                    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
                    prop_assert!(text.len() != 128 || !text.chars().all(is_hex));
                }
            }
        }
    }

    #[test]
    fn error_names_the_value_and_the_rule() {
        let message = |text: &str| text.parse::<HeaderId>().unwrap_err().to_string();
        assert_eq!(
            message("abc"),
            "the id \"abc\" has 3 characters; an id has 128 lower-case hex digits"
        );
        assert_eq!(
            message(&format!("a{}", "F".repeat(127))),
            "the id \"aFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF\"… has 'F' at position 1; an id has only 0-9 and a-f"
        );
        assert!(message(&"é".repeat(64)).contains("'é' at position 0"));
    }
}
