use std::fmt;

/// An address of a ledger's state, or the beginning of addresses. It covers itself and all addresses that
/// start with it; the empty one covers everything.
///
/// ```
/// use grid_batch_core::batches::AddressPrefix;
///
/// let family = AddressPrefix::new("1cf126");
/// assert!(family.covers(&AddressPrefix::new("1cf126aa")));
/// assert!(family.overlaps(&AddressPrefix::new("1c")));
/// assert!(!family.overlaps(&AddressPrefix::new("1cf127")));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressPrefix(Box<str>);

impl AddressPrefix {
    /// The number of hex digits of a complete address, the longest prefix.
    pub const LONGEST: usize = 70;

    /// Covers every address.
    pub fn everything() -> Self {
        Self("".into())
    }

    /// The prefix with this text, as a transaction declares it.
    ///
    /// A validator accepts up to 35 pairs of lower-case hex digits and refuses a transaction that declares anything
    /// else. If the text breaks this rule, only the longest valid beginning is kept. It covers more, never less.
    ///
    /// ```
    /// use grid_batch_core::batches::AddressPrefix;
    ///
    /// assert_eq!(AddressPrefix::new("1cf126").as_str(), "1cf126");
    /// assert_eq!(AddressPrefix::new("1cf12").as_str(), "1cf1");
    /// assert_eq!(AddressPrefix::new("1cF126").as_str(), "1c");
    /// assert_eq!(AddressPrefix::new("no address"), AddressPrefix::everything());
    /// ```
    pub fn new(text: &str) -> Self {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digits = text.bytes().take(Self::LONGEST).take_while(is_digit).count();
        Self(text[..digits - digits % 2].into())
    }

    /// The text: an even number of lower-case hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this covers everything that `other` covers.
    pub fn covers(&self, other: &Self) -> bool {
        other.0.starts_with(&*self.0)
    }

    /// Whether any address is covered by both.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.covers(other) || other.covers(self)
    }

    /// The first `length` digits, rounded down to an even number; all of them if there are fewer.
    #[must_use]
    pub fn shortened(&self, length: usize) -> Self {
        let length = length.min(self.0.len());
        Self(self.0[..length - length % 2].into())
    }

    /// The length of the longest prefix that covers both.
    pub(crate) fn common_length(&self, other: &Self) -> usize {
        let equal = self.0.bytes().zip(other.0.bytes()).take_while(|(a, b)| a == b).count();
        equal - equal % 2
    }
}

impl fmt::Debug for AddressPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for AddressPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            "" => f.write_str("every address"),
            text => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_address_is_kept() {
        let address = "1c".repeat(35);
        assert_eq!(AddressPrefix::new(&address).as_str(), address);
    }

    #[test]
    fn text_is_cut_where_a_validator_refuses_it() {
        let kept = |text: &str| AddressPrefix::new(text).to_string();
        assert_eq!(kept(&"1c".repeat(36)), "1c".repeat(35), "longer than an address");
        assert_eq!(kept("abc"), "ab", "odd");
        assert_eq!(kept("00001D"), "0000", "upper case");
        assert_eq!(kept("00é0"), "00", "not ASCII");
        assert_eq!(kept("00\n"), "00", "a line break");
        for text in ["", "a", "é", " 00", "xyz", "AB"] {
            assert_eq!(kept(text), "every address", "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_text_covers_all_that_the_text_covers(
            text in "[0-9a-f]{0,72}[0-9a-zA-Zé \n]{0,3}",
            rest in "[0-9a-f]{70}",
        ) {
            let kept = AddressPrefix::new(&text);
            prop_assert!(text.starts_with(kept.as_str()));
            prop_assert!(kept.as_str().len().is_multiple_of(2) && kept.as_str().len() <= 70);
            let address = AddressPrefix::new(&format!("{text}{rest}"));
            prop_assert!(kept.covers(&address));
        }

        #[test]
        fn shortened_covers_the_whole(text in "([0-9a-f]{2}){0,35}", length in 0..80usize) {
            let prefix = AddressPrefix::new(&text);
            let shortened = prefix.shortened(length);
            prop_assert!(shortened.covers(&prefix));
            prop_assert!(shortened.as_str().len() <= length);
        }
    }
}
