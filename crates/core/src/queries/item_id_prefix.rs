use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::batches::StoredBatch;
use crate::{Excerpt, ItemId, item_id::invalid_character};

/// The first characters of an [`ItemId`], or all of it: what a person types to name a batch.
///
/// ```
/// use grid_batch_core::{ItemId, queries::ItemIdPrefix};
///
/// let prefix: ItemIdPrefix = "5a5a5a5ab".parse()?;
/// let id: ItemId = "5a5a5a5abcde".parse().expect("the id is valid");
/// assert!(prefix.begins(&id));
/// assert!("5a5a".parse::<ItemIdPrefix>().is_err());
/// # Ok::<(), grid_batch_core::queries::ItemIdPrefixError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ItemIdPrefix(String);

/// Why a text is not an [`ItemIdPrefix`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ItemIdPrefixError {
    /// The text is too short or too long.
    #[error(
        "the id {value} has {length} characters; give the first {} to {} characters of the id",
        ItemIdPrefix::SHORTEST,
        ItemId::LONGEST
    )]
    Length {
        /// The beginning of the text.
        value: Excerpt,
        /// How many characters it has.
        length: usize,
    },
    /// A character is not allowed.
    #[error(
        "the id {value} has {character:?}; an id has only letters, digits and -._~, and no dot at its beginning"
    )]
    Character {
        /// The beginning of the text.
        value: Excerpt,
        /// The first invalid character.
        character: char,
    },
}

impl ItemIdPrefix {
    /// The minimum number of characters.
    pub const SHORTEST: usize = 8;

    /// This prefix as an id, if it is complete because no id is longer.
    pub fn whole(&self) -> Option<ItemId> {
        (self.0.len() == ItemId::LONGEST).then(|| self.0.parse().ok())?
    }

    /// If this is the whole id of some of these batches, keeps only those.
    pub fn prefer_whole(&self, batches: &mut Vec<StoredBatch>) {
        let is_whole = |batch: &StoredBatch| batch.batch_id.to_string() == self.0;
        if batches.iter().any(is_whole) {
            batches.retain(is_whole);
        }
    }

    /// Whether the text of this id begins with it.
    pub fn begins(&self, id: &ItemId) -> bool {
        id.to_string().starts_with(&self.0)
    }

    /// Inclusive ranges of binary forms. They contain all ids that [begin](Self::begins) with this prefix. The only
    /// other ids in them are signatures whose bytes happen to be these characters.
    pub fn ranges(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let filled = |digit: &str| {
            let missing = ItemId::LONGEST - self.0.len();
            let signature: Option<ItemId> =
                format!("{}{}", self.0, digit.repeat(missing)).parse().ok();
            signature.map(|id| id.as_bytes().to_vec())
        };
        let text = || self.0.clone().into_bytes();
        // Greater than every character of an id.
        let texts = (text(), [text(), vec![0x7f]].concat());
        let is_hex = self.0.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let signatures = filled("0").zip(filled("f")).filter(|_| is_hex);
        signatures.into_iter().chain([texts]).collect()
    }
}

impl FromStr for ItemIdPrefix {
    type Err = ItemIdPrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let value = || Excerpt::of(text);
        if let Some((_, character)) = invalid_character(text) {
            return Err(ItemIdPrefixError::Character { value: value(), character });
        }
        match text.len() {
            Self::SHORTEST..=ItemId::LONGEST => Ok(Self(text.to_owned())),
            length => Err(ItemIdPrefixError::Length { value: value(), length }),
        }
    }
}

impl From<ItemId> for ItemIdPrefix {
    fn from(id: ItemId) -> Self {
        Self(id.to_string())
    }
}

impl fmt::Display for ItemIdPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item_id::tests::texts;
    use proptest::prelude::*;

    fn is_in_range(prefix: &ItemIdPrefix, id: &ItemId) -> bool {
        let is_in =
            |(first, last): &(Vec<u8>, Vec<u8>)| (&first[..]..=&last[..]).contains(&id.as_bytes());
        prefix.ranges().iter().any(is_in)
    }

    proptest! {
        #[test]
        fn ranges_have_the_ids_that_begin_with_it(
            text in texts(),
            other in texts(),
            length in 8..128usize,
        ) {
            let prefix = &text[..length.min(text.len())];
            let Ok(prefix) = prefix.parse::<ItemIdPrefix>() else { return Ok(()) };
            let [id, other] = [text, other].map(|text| text.parse::<ItemId>().unwrap());
            prop_assert!(prefix.begins(&id) && is_in_range(&prefix, &id));
            prop_assert_eq!(prefix.begins(&other), is_in_range(&prefix, &other));
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        let message = |text: &str| text.parse::<ItemIdPrefix>().unwrap_err().to_string();
        assert!(message("").contains("has 0 characters"), "{}", message(""));
        assert!(message("5a5a5a5").contains("the first 8 to 128 characters"));
        assert!(message(&"5".repeat(129)).contains("has 129 characters"));
        assert!(message("5a5a/a5a").contains("'/'"));
        assert!(message("5a5a5a5é").contains("'é'"));
    }
}
