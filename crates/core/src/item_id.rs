use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};

use thiserror::Error;

use crate::{Excerpt, Hex};

/// The id of a batch or of a transaction: 1 to 128 letters, digits and `-._~`, with no dot at its beginning. It can
/// therefore be a part of a URL.
///
/// The binary form of a signature, 128 lower-case hex digits, has 64 bytes. The binary form of any other text is the
/// text itself; a text of 64 characters is followed by a zero byte, which distinguishes it from a signature. Ids are
/// therefore equal if their binary forms are equal. Signatures sort like their texts, and so do the other ids.
///
/// ```
/// use grid_batch_core::ItemId;
///
/// let signature: ItemId = "5a".repeat(64).parse()?;
/// assert_eq!(signature.as_bytes(), [0x5a; 64]);
/// assert_eq!(signature.to_string(), "5a".repeat(64));
///
/// let other: ItemId = "0.0.1001-1700000000-25".parse()?;
/// assert_eq!(other.as_bytes(), b"0.0.1001-1700000000-25");
/// assert!("a/b".parse::<ItemId>().is_err());
/// # Ok::<(), grid_batch_core::ItemIdError>(())
/// ```
#[doc(alias = "batch id")]
#[doc(alias = "transaction id")]
#[derive(Clone, Copy)]
pub struct ItemId {
    length: u8,
    /// The binary form, padded with zeros.
    bytes: [u8; ItemId::LONGEST],
}

/// Why a text or a byte sequence is not an [`ItemId`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ItemIdError {
    /// The text is empty or too long.
    #[error("the id {value} has {length} bytes; an id has 1 to {}", ItemId::LONGEST)]
    TextLength {
        /// The beginning of the text.
        value: Excerpt,
        /// How many bytes it has.
        length: usize,
    },
    /// A character is not allowed.
    #[error(
        "the id {value} has {character:?} at position {position}; an id has only letters, digits and -._~, and \
         no dot at its beginning"
    )]
    Character {
        /// The beginning of the text.
        value: Excerpt,
        /// The first invalid character.
        character: char,
        /// Its position, counted in characters from 0.
        position: usize,
    },
    /// The bytes are not the binary form of an id.
    #[error("a binary id of {length} bytes is not valid")]
    Binary {
        /// How many bytes there are.
        length: usize,
    },
}

impl ItemId {
    /// Length of the binary form of a signature.
    pub const BYTES: usize = 64;
    /// The longest text, in bytes.
    pub const LONGEST: usize = 2 * Self::BYTES;

    /// The id of 128 hex digits with this binary form.
    pub const fn from_bytes(signature: [u8; Self::BYTES]) -> Self {
        let mut bytes = [0; Self::LONGEST];
        let (first, _) = bytes.split_at_mut(Self::BYTES);
        first.copy_from_slice(&signature);
        Self { length: Self::BYTES as u8, bytes }
    }

    /// The binary form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The bytes of an id of 128 hex digits; `None` for other ids.
    pub fn signature(&self) -> Option<&[u8; Self::BYTES]> {
        self.as_bytes().try_into().ok()
    }

    /// The id with this text, which has been checked and is not a signature.
    fn of_text(text: &[u8]) -> Self {
        let mut bytes = [0; Self::LONGEST];
        bytes[..text.len()].copy_from_slice(text);
        let length = if text.len() == Self::BYTES { text.len() + 1 } else { text.len() };
        Self { length: length as u8, bytes }
    }
}

/// The first character that no id has, and its position.
pub(crate) fn invalid_character(text: &str) -> Option<(usize, char)> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    let mut characters = text.chars().enumerate();
    characters.find(|(position, c)| !is_valid(*c) || (*position, *c) == (0, '.'))
}

/// The bytes of 128 lower-case hex digits.
fn signature(text: &str) -> Option<[u8; ItemId::BYTES]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let mut bytes = [0; ItemId::BYTES];
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

impl FromStr for ItemId {
    type Err = ItemIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(bytes) = signature(text) {
            return Ok(Self::from_bytes(bytes));
        }
        let value = || Excerpt::of(text);
        match (text.len(), invalid_character(text)) {
            (1..=Self::LONGEST, None) => Ok(Self::of_text(text.as_bytes())),
            (1..=Self::LONGEST, Some((position, character))) => {
                Err(ItemIdError::Character { value: value(), character, position })
            }
            (length, _) => Err(ItemIdError::TextLength { value: value(), length }),
        }
    }
}

/// Reads the binary form. Each id has only one.
impl TryFrom<&[u8]> for ItemId {
    type Error = ItemIdError;

    fn try_from(bytes: &[u8]) -> Result<Self, Self::Error> {
        if let Ok(signature) = bytes.try_into() {
            return Ok(Self::from_bytes(signature));
        }
        let error = ItemIdError::Binary { length: bytes.len() };
        let text = match bytes {
            [text @ .., 0] if text.len() == Self::BYTES => text,
            _ => bytes,
        };
        let id = str::from_utf8(text).ok().and_then(|text| text.parse::<Self>().ok());
        id.filter(|id| id.as_bytes() == bytes).ok_or(error)
    }
}

impl PartialEq for ItemId {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for ItemId {}

impl PartialOrd for ItemId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ItemId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for ItemId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_bytes() {
            bytes if bytes.len() == Self::BYTES => f.pad(&Hex(bytes).to_string()),
            bytes => f.pad(str::from_utf8(bytes).unwrap_or_default().trim_end_matches('\0')),
        }
    }
}

impl fmt::Debug for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ItemId({self})")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Signatures, other texts of every length, and texts that look like parts of signatures.
    pub(crate) fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            "[0-9a-f]{128}",
            "[-a-zA-Z0-9_~][-a-zA-Z0-9._~]{0,127}",
            "[-a-zA-Z0-9_~][-a-zA-Z0-9._~]{62,64}",
            "[0-9a-f]{62,66}",
            "[0-9a-f]{127}[0-9a-fA-F]",
        ]
    }

    fn is_signature(text: &str) -> bool {
        text.len() == 128 && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
    }

    proptest! {
        #[test]
        fn text_and_binary_form_round_trip(text in texts()) {
            let id: ItemId = text.parse().unwrap();
            prop_assert_eq!(id.to_string(), &*text);
            prop_assert_eq!(id.as_bytes().len() == 64, is_signature(&text));
            prop_assert_eq!(ItemId::try_from(id.as_bytes()), Ok(id));
        }

        #[test]
        fn binary_form_is_unambiguous(a in texts(), b in texts()) {
            let ids = [&a, &b].map(|text| text.parse::<ItemId>().unwrap());
            prop_assert_eq!(ids[0] == ids[1], a == b);
            if is_signature(&a) == is_signature(&b) {
                prop_assert_eq!(ids[0].cmp(&ids[1]), a.cmp(&b));
            }
        }

        #[test]
        fn any_bytes_are_one_id_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..132)) {
            if let Ok(id) = ItemId::try_from(&bytes[..]) {
                prop_assert_eq!(id.as_bytes(), &bytes[..]);
                prop_assert_eq!(id.to_string().parse(), Ok(id));
            }
        }

        #[test]
        fn any_text_is_that_id_or_an_error(text in ".{0,130}") {
            match text.parse::<ItemId>() {
                Ok(id) => prop_assert_eq!(id.to_string(), text),
                Err(_) => prop_assert!(
                    text.is_empty() || text.len() > 128 || invalid_character(&text).is_some()
                ),
            }
        }
    }

    #[test]
    fn error_names_the_value_and_the_rule() {
        let message = |text: &str| text.parse::<ItemId>().unwrap_err().to_string();
        assert_eq!(message(""), "the id \"\" has 0 bytes; an id has 1 to 128");
        assert!(message(&"a".repeat(129)).contains("has 129 bytes; an id has 1 to 128"));
        assert_eq!(
            message("ab/c"),
            "the id \"ab/c\" has '/' at position 2; an id has only letters, digits and -._~, and no dot at its \
             beginning"
        );
        assert!(message("..").contains("'.' at position 0"));
    }

    #[test]
    fn signature_has_no_second_binary_form() {
        for bytes in [vec![b'a'; 128], vec![0], b"abc\0".to_vec(), Vec::new(), vec![b'a'; 129]] {
            let error = ItemIdError::Binary { length: bytes.len() };
            assert_eq!(ItemId::try_from(&bytes[..]), Err(error), "{bytes:?}");
        }
    }
}
