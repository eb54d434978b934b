use std::{fmt, str::FromStr};

use thiserror::Error;

/// A text that a client gives to a batch, to find it again: an id of its own, for example.
///
/// ```
/// use grid_batch_core::batches::BatchLabel;
///
/// let label: BatchLabel = "invoice 17".parse()?;
/// assert_eq!(label.as_str(), "invoice 17");
/// assert!("two\nlines".parse::<BatchLabel>().is_err());
/// # Ok::<(), grid_batch_core::batches::BatchLabelError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchLabel(Box<str>);

/// A text that is not a [`BatchLabel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a label must have 1 to {} characters and no control characters",
    BatchLabel::MAX_CHARACTERS
)]
pub struct BatchLabelError;

impl BatchLabel {
    /// Limit on the number of characters.
    pub const MAX_CHARACTERS: usize = 255;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BatchLabel {
    type Err = BatchLabelError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_short = (1..=Self::MAX_CHARACTERS).contains(&text.chars().count());
        if is_short && !text.chars().any(char::is_control) {
            Ok(Self(text.into()))
        } else {
            Err(BatchLabelError)
        }
    }
}

impl fmt::Display for BatchLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_is_short_and_has_no_control_characters() {
        for text in ["a", " ", "é ü", &"é".repeat(255)] {
            assert_eq!(text.parse::<BatchLabel>().unwrap().to_string(), text);
        }
        for text in ["", "a\u{0}", "\n", "a\u{7f}", &"a".repeat(256)] {
            assert_eq!(text.parse::<BatchLabel>(), Err(BatchLabelError), "{text:?}");
        }
    }
}
