use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::{HeaderId, excerpt::Excerpt};

/// The first digits of a [`HeaderId`], or all of it: what a person types to name a batch.
///
/// ```
/// use grid_batch_core::HeaderIdPrefix;
///
/// let prefix: HeaderIdPrefix = "5a5a5a5ab".parse()?;
/// assert!(prefix.first().to_string().starts_with("5a5a5a5ab000"));
/// assert!(prefix.last().to_string().starts_with("5a5a5a5abfff"));
/// assert!("5a5a".parse::<HeaderIdPrefix>().is_err());
/// # Ok::<(), grid_batch_core::HeaderIdPrefixError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HeaderIdPrefix {
    digits: String,
    first: HeaderId,
    last: HeaderId,
}

/// Why a text is not a [`HeaderIdPrefix`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderIdPrefixError {
    /// The text is too short or too long.
    #[error(
        "the id {value} has {length} characters; give the first {} to {} digits of the id",
        HeaderIdPrefix::SHORTEST,
        2 * HeaderId::BYTES
    )]
    Length {
        /// The beginning of the text.
        value: Excerpt,
        /// How many characters it has.
        length: usize,
    },
    /// A character is not one of `0-9a-f`.
    #[error("the id {value} has {character:?}; an id has only 0-9 and a-f")]
    Character {
        /// The beginning of the text.
        value: Excerpt,
        /// The first invalid character.
        character: char,
    },
}

impl HeaderIdPrefix {
    /// The fewest digits that name a batch.
    pub const SHORTEST: usize = 8;

    /// The id, if this is all of it.
    pub fn whole(&self) -> Option<&HeaderId> {
        (self.first == self.last).then_some(&self.first)
    }

    /// The smallest id with these first digits.
    pub const fn first(&self) -> &HeaderId {
        &self.first
    }

    /// The greatest id with these first digits.
    pub const fn last(&self) -> &HeaderId {
        &self.last
    }
}

impl FromStr for HeaderIdPrefix {
    type Err = HeaderIdPrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let value = || Excerpt::of(text);
        if let Some(character) = text.chars().find(|c| !matches!(c, '0'..='9' | 'a'..='f')) {
            return Err(HeaderIdPrefixError::Character { value: value(), character });
        }
        let length = text.len();
        let filled = |digit: &str| {
            let missing = (2 * HeaderId::BYTES).checked_sub(length)?;
            format!("{text}{}", digit.repeat(missing)).parse().ok()
        };
        match (filled("0"), filled("f")) {
            (Some(first), Some(last)) if length >= Self::SHORTEST => {
                Ok(Self { digits: text.to_owned(), first, last })
            }
            _ => Err(HeaderIdPrefixError::Length { value: value(), length }),
        }
    }
}

impl From<HeaderId> for HeaderIdPrefix {
    fn from(id: HeaderId) -> Self {
        Self { digits: id.to_string(), first: id, last: id }
    }
}

impl fmt::Display for HeaderIdPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_spans_the_ids_that_begin_with_it() {
        let id = "5a".repeat(64);
        for length in [8, 9, 127, 128] {
            let prefix: HeaderIdPrefix = id[..length].parse().unwrap();
            let whole: HeaderId = id.parse().unwrap();
            assert!((*prefix.first()..=*prefix.last()).contains(&whole), "{prefix}");
            assert!(prefix.first().to_string().starts_with(&id[..length]));
            assert!(prefix.last().to_string().starts_with(&id[..length]));
            assert_eq!(prefix.whole(), (length == 128).then_some(&whole));
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        let message = |text: &str| text.parse::<HeaderIdPrefix>().unwrap_err().to_string();
        assert!(message("").contains("has 0 characters"), "{}", message(""));
        assert!(message("5a5a5a5").contains("the first 8 to 128 digits"));
        assert!(message(&"5".repeat(129)).contains("has 129 characters"));
        assert!(message("5A5A5A5A").contains("'A'"));
        assert!(message("5a5a5a5é").contains("'é'"));
    }
}
