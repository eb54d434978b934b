use std::{fmt, num::NonZero, str::FromStr};

use grid_batch_core::Excerpt;
use thiserror::Error;

/// Batches a second, and how many at once after a pause.
///
/// ```
/// use grid_batch_api::Rate;
///
/// assert_eq!("100/500".parse::<Rate>()?.to_string(), "100/500");
/// assert_eq!("100".parse::<Rate>()?.to_string(), "100/100");
/// # Ok::<(), grid_batch_api::RateError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Batches a second.
    pub per_second: NonZero<u32>,
    /// Batches at once.
    pub burst: NonZero<u32>,
}

/// Why a text is not a [`Rate`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{value} is not a rate; write batches a second and how many at once, such as 100/500, both above zero"
)]
pub struct RateError {
    /// The beginning of the text.
    pub value: Excerpt,
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (per_second, burst) = text.split_once('/').unwrap_or((text, text));
        let error = |_| RateError { value: Excerpt::of(text) };
        Ok(Self {
            per_second: per_second.parse().map_err(error)?,
            burst: burst.parse().map_err(error)?,
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.per_second, self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "0", "1/0", "1/2/3", "-1", "1.5", "fast"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
