//! The rows of the index that a batch has, and those that it looks for.

use std::collections::BTreeSet;

use grid_batch_core::{AddressPrefix, DeclaredAccess};

use super::lengths::Lengths;

/// What a row of `declared_addresses` says about its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The batch writes the address.
    Writes,
    /// It reads it.
    Reads,
    /// It writes some longer address.
    WritesBelow,
    /// It reads some longer address.
    ReadsBelow,
}

impl Kind {
    pub(super) fn as_i32(self) -> i32 {
        match self {
            Self::Writes => 0,
            Self::Reads => 1,
            Self::WritesBelow => 2,
            Self::ReadsBelow => 3,
        }
    }
}

/// An address with what a row says about it.
pub(super) type Entry = (String, Kind);

/// What a batch declares, with addresses of lengths that its service has in use only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexedAccess(DeclaredAccess);

impl IndexedAccess {
    /// Addresses of other lengths are cut to the next shorter one in use.
    pub(super) fn of(access: &DeclaredAccess, lengths: &Lengths) -> Self {
        let cut = |prefixes: &[AddressPrefix]| -> Vec<AddressPrefix> {
            let text = |prefix: &AddressPrefix| {
                let text = prefix.as_str();
                AddressPrefix::new(&text[..lengths.cut(text.len())])
            };
            prefixes.iter().map(text).collect()
        };
        Self(DeclaredAccess::new(cut(access.reads()), cut(access.writes()), []))
    }

    /// The rows of the batch.
    pub(super) fn rows(&self, lengths: &Lengths) -> BTreeSet<Entry> {
        let mut rows = BTreeSet::new();
        for (prefixes, kind, below) in [
            (self.0.writes(), Kind::Writes, Kind::WritesBelow),
            (self.0.reads(), Kind::Reads, Kind::ReadsBelow),
        ] {
            for prefix in prefixes {
                let text = prefix.as_str();
                rows.insert((text.to_owned(), kind));
                rows.extend(lengths.shorter(text.len()).map(|l| (text[..l].to_owned(), below)));
            }
        }
        rows
    }

    /// The rows that batches have with which this one conflicts.
    pub(super) fn conflicting(&self, lengths: &Lengths) -> BTreeSet<Entry> {
        let mut entries = BTreeSet::new();
        for (prefixes, same, above) in [
            (
                self.0.writes(),
                [Kind::Writes, Kind::Reads, Kind::WritesBelow, Kind::ReadsBelow].as_slice(),
                [Kind::Writes, Kind::Reads].as_slice(),
            ),
            (self.0.reads(), &[Kind::Writes, Kind::WritesBelow], &[Kind::Writes]),
        ] {
            for prefix in prefixes {
                let text = prefix.as_str();
                entries.extend(same.iter().map(|kind| (text.to_owned(), *kind)));
                for length in [0].into_iter().chain(lengths.shorter(text.len())) {
                    entries.extend(above.iter().map(|kind| (text[..length].to_owned(), *kind)));
                }
            }
        }
        entries
    }

    /// The batches before this position may lack rows that this batch looks for; `None`: none lacks any.
    pub(super) fn incomplete_before(&self, lengths: &Lengths) -> Option<i64> {
        let prefixes = self.0.writes().iter().chain(self.0.reads());
        prefixes.filter_map(|prefix| lengths.incomplete_before(prefix.as_str().len())).max()
    }
}
