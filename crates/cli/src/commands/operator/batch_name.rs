use std::{error::Error, fmt, str::FromStr};

use grid_batch_core::queries::ItemIdPrefix;

/// A batch as an operator names it: the first characters of its id, and with `@` the attempt that was looked
/// at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) struct BatchName {
    pub(in crate::commands) prefix: ItemIdPrefix,
    pub(in crate::commands) attempt: Option<u32>,
}

impl FromStr for BatchName {
    type Err = Box<dyn Error + Send + Sync>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((id, attempt)) = text.split_once('@') else {
            return Ok(Self { prefix: text.parse()?, attempt: None });
        };
        let attempt = attempt.parse::<u32>();
        let attempt = attempt.map_err(|_| "expected the number of an attempt after @")?;
        Ok(Self { prefix: id.parse()?, attempt: Some(attempt) })
    }
}

impl fmt::Display for BatchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.prefix.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempt_follows_the_id() {
        let attempt = |text: &str| text.parse::<BatchName>().map(|name| name.attempt);
        assert_eq!(attempt("5a5a5a5a").unwrap(), None);
        assert_eq!(attempt("5a5a5a5a@12").unwrap(), Some(12));
        for text in ["5a5a5a5a@", "5a5a5a5a@x", "5a5a5a5a@-1", "@1"] {
            assert!(attempt(text).is_err(), "{text}");
        }
    }
}
