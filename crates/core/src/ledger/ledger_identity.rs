use std::fmt;

use crate::{Excerpt, Timestamp};

/// Identifies a ledger. A database is bound to one, so that no batch is sent to another ledger.
///
/// Two identities belong to the same ledger only if all their parts are equal, or if one id says less than the other
/// ([`agrees_with`](Self::agrees_with)).
///
/// ```
/// use grid_batch_core::ledger::LedgerIdentity;
///
/// let named = LedgerIdentity { name: "production".to_owned(), ..LedgerIdentity::new("scabbard") };
/// assert_eq!(named.to_string(), "scabbard, named \"production\"");
/// assert_ne!(named, LedgerIdentity::new("scabbard"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LedgerIdentity {
    /// The kind of ledger, such as `sawtooth`.
    pub kind: String,
    /// What every node of the ledger reports and no node of another ledger does, such as the id of the first block.
    /// Empty if nodes of this kind report nothing like it.
    pub id: String,
    /// The name that the operator gave the ledger; empty without one.
    pub name: String,
}

impl LedgerIdentity {
    /// A ledger of this kind, without an id or a name.
    pub fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), id: String::new(), name: String::new() }
    }

    /// Whether both may be the same ledger: all parts are equal, or one id is the beginning of the other, up to a
    /// comma. A node may know only some of what identifies its ledger.
    ///
    /// ```
    /// use grid_batch_core::ledger::LedgerIdentity;
    ///
    /// let with_id = |id: &str| LedgerIdentity { id: id.to_owned(), ..LedgerIdentity::new("evm") };
    /// assert!(with_id("chain 1").agrees_with(&with_id("chain 1, genesis block 0xab")));
    /// assert!(!with_id("chain 1, genesis block 0xcd").agrees_with(&with_id("chain 1, genesis block 0xab")));
    /// assert!(!with_id("chain 1").agrees_with(&with_id("chain 10")));
    /// ```
    pub fn agrees_with(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.name == other.name
            && (self.id == other.id || self.tells_more_than(other) || other.tells_more_than(self))
    }

    /// Whether the id consists of the other one and something more.
    pub fn tells_more_than(&self, other: &Self) -> bool {
        let more = self.id.strip_prefix(&other.id);
        !other.id.is_empty() && more.is_some_and(|more| more.starts_with(", "))
    }
}

impl fmt::Display for LedgerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, id, name } = self;
        write!(f, "{kind}")?;
        if !id.is_empty() {
            write!(f, ", {}", Shortened(id))?;
        }
        if !name.is_empty() {
            write!(f, ", named {}", Excerpt::of(name))?;
        }
        Ok(())
    }
}

/// A text in which each long word, such as a hash, is shortened to its beginning.
struct Shortened<'a>(&'a str);

impl fmt::Display for Shortened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONG: usize = 24;
        const BEGINNING: usize = 16;
        for (index, word) in self.0.split(' ').enumerate() {
            let space = if index == 0 { "" } else { " " };
            match word.char_indices().nth(BEGINNING) {
                Some((end, _)) if word.chars().count() > LONG => {
                    write!(f, "{space}{}…", &word[..end])?;
                }
                _ => write!(f, "{space}{word}")?,
            }
        }
        Ok(())
    }
}

/// The ledger that a store is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedLedger {
    /// Which ledger it is.
    pub identity: LedgerIdentity,
    /// When it was recorded.
    pub recorded_at: Timestamp,
}

/// The result of comparing a ledger with the one that the store is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerConfirmation {
    /// It is that ledger, or the store was bound to none and is now bound to it.
    Confirmed,
    /// The store is bound to another one.
    Other(RecordedLedger),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_of_an_id_are_shortened() {
        for (id, expected) in [
            (
                format!("chain 1, genesis block 0x{}", "ab".repeat(32)),
                "evm, chain 1, genesis block 0xababababababab…",
            ),
            ("ä".repeat(25), "evm, ääääääääääääääää…"),
            ("a".repeat(24), "evm, aaaaaaaaaaaaaaaaaaaaaaaa"),
            (String::new(), "evm"),
        ] {
            let identity = LedgerIdentity { id, ..LedgerIdentity::new("evm") };
            assert_eq!(identity.to_string(), expected);
        }
    }
}
