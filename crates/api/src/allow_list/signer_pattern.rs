use std::{fmt, str::FromStr};

use grid_batch_core::Excerpt;
use grid_batch_core::batches::SignerId;
use grid_batch_support::Wildcard;
use thiserror::Error;

/// Public keys of signers: 66 lower-case hex digits, or fewer with `*`, which stands for any number of
/// digits, also none.
///
/// ```
/// use grid_batch_api::SignerPattern;
/// use grid_batch_core::batches::SignerId;
///
/// let pattern: SignerPattern = "02ab*".parse()?;
/// let mut key = [0; 33];
/// key[..2].copy_from_slice(&[0x02, 0xab]);
/// assert!(pattern.matches(&SignerId::from_bytes(key)));
/// assert!("02AB*".parse::<SignerPattern>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignerPattern(Wildcard);

/// Why a text is not a [`SignerPattern`]: no public key has this form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the pattern {value} matches no public key; write the 66 lower-case hex digits of a key, or its \
     first digits and *"
)]
pub struct SignerPatternError {
    /// The beginning of the text.
    pub value: Excerpt,
}

impl SignerPattern {
    const DIGITS: usize = 2 * SignerId::BYTES;

    /// Whether the public key has this form.
    pub fn matches(&self, signer: &SignerId) -> bool {
        self.0.matches(&signer.to_string())
    }
}

impl FromStr for SignerPattern {
    type Err = SignerPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.bytes().filter(|byte| *byte != b'*');
        let are_digits = digits.clone().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let fits = if text.contains('*') {
            digits.count() <= Self::DIGITS
        } else {
            text.len() == Self::DIGITS
        };
        if are_digits && fits {
            Ok(Self(Wildcard::new(text)))
        } else {
            Err(SignerPatternError { value: Excerpt::of(text) })
        }
    }
}

impl fmt::Display for SignerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_is_a_public_key_or_a_part_of_one() {
        let key = "02".to_owned() + &"ab".repeat(32);
        for text in [&*key, "*", "02ab*", &format!("{key}*")] {
            assert_eq!(text.parse::<SignerPattern>().map(|p| p.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "02ab", "02AB*", "0x02*", &key[1..], &format!("{key}0*")] {
            assert!(text.parse::<SignerPattern>().is_err(), "{text:?}");
        }
    }
}
