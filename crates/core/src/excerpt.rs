use std::fmt;

/// The beginning of a value from outside, short enough for an error message or a log line.
///
/// ```
/// use grid_batch_core::Excerpt;
///
/// assert_eq!(Excerpt::of("short").to_string(), "\"short\"");
/// assert_eq!(Excerpt::of(&"long ".repeat(99)).to_string(), "\"long long long long long long lo\"…");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    beginning: String,
    whole: bool,
}

impl Excerpt {
    const CHARACTERS: usize = 32;

    /// The first 32 characters of `text`.
    pub fn of(text: &str) -> Self {
        let beginning: String = text.chars().take(Self::CHARACTERS).collect();
        let whole = beginning.len() == text.len();
        Self { beginning, whole }
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}", self.beginning, if self.whole { "" } else { "…" })
    }
}
