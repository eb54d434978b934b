use std::fmt;

/// A text in which each `*` stands for any number of characters, including none.
///
/// ```
/// use grid_batch_support::Wildcard;
///
/// let pattern = Wildcard::new("abcDE-*::gs*");
/// assert!(pattern.matches("abcDE-F0123::gsAA"));
/// assert!(!pattern.matches("other-F0123::gsAA"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard(String);

impl Wildcard {
    /// The pattern of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether the whole text has this form.
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == text };
        let Some(text) = text.strip_prefix(first) else { return false };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        let Some(text) = text.strip_suffix(last) else { return false };
        // The first occurrence of a part leaves the most text for the parts after it.
        let find = |text: &str, part: &str| Some(text.find(part)? + part.len());
        middle
            .split('*')
            .try_fold(text, |text, part| find(text, part).map(|end| &text[end..]))
            .is_some()
    }
}

impl fmt::Display for Wildcard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, by trying every length for each `*`.
    fn matches_by_definition(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => {
                (0..=text.len()).any(|length| matches_by_definition(rest, &text[length..]))
            }
            [first, rest @ ..] => {
                text.first() == Some(first) && matches_by_definition(rest, &text[1..])
            }
        }
    }

    #[test]
    fn star_stands_for_any_characters() {
        for (pattern, text, expected) in [
            ("a::b", "a::b", true),
            ("a::b", "a::bc", false),
            ("a::*", "a::", true),
            ("a::*", "a:b", false),
            ("*", "anything", true),
            ("a::*", "a::b", true),
            ("a::*", "b::a::", false),
            ("*::b", "a::b", true),
            ("*::b", "a::bb", false),
            ("a*a", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acbc", true),
            ("a*b*c", "ac", false),
            ("ab*ba", "aba", false),
            ("**", "x", true),
        ] {
            assert_eq!(Wildcard::new(pattern).matches(text), expected, "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn matching_follows_the_definition(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
            let expected = matches_by_definition(pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(Wildcard::new(pattern).matches(&text), expected);
        }
    }
}
