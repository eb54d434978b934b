//! What a batch declares that it reads, writes and depends on.

mod encoding;
mod prefixes;

use crate::ItemId;
use crate::batches::AddressPrefix;

pub use encoding::DeclaredAccessError;

/// What the transactions of a batch may read and write, and which transactions of other batches must be
/// applied before it.
///
/// If a ledger refuses access to anything that is not declared, two batches that do not
/// [conflict](Self::conflicts_with) have the same effect in either order.
///
/// ```
/// use grid_batch_core::batches::{AddressPrefix, DeclaredAccess};
///
/// let access = |reads: &str, writes: &str| {
///     DeclaredAccess::new([AddressPrefix::new(reads)], [AddressPrefix::new(writes)], [])
/// };
/// let account = access("1cf126aa", "1cf126aa");
/// assert!(!account.conflicts_with(&access("1cf126bb", "1cf126bb")));
/// assert!(account.conflicts_with(&access("1cf126", "1cf126bb")), "it reads all accounts");
/// assert!(!access("00", "aa").conflicts_with(&access("00", "bb")), "both only read 00");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredAccess {
    reads: Vec<AddressPrefix>,
    writes: Vec<AddressPrefix>,
    dependencies: Vec<ItemId>,
}

impl DeclaredAccess {
    /// Limit on the number of prefixes that are read, and of those that are written. If a batch has more, some of them
    /// are replaced by their longest common beginnings, which cover more, never less.
    pub const MOST_PREFIXES: usize = 256;

    /// Access with these reads, writes and dependencies, in any order.
    pub fn new(
        reads: impl IntoIterator<Item = AddressPrefix>,
        writes: impl IntoIterator<Item = AddressPrefix>,
        dependencies: impl IntoIterator<Item = ItemId>,
    ) -> Self {
        let mut dependencies: Vec<ItemId> = dependencies.into_iter().collect();
        dependencies.sort_unstable();
        dependencies.dedup();
        let writes = prefixes::bounded(prefixes::without_covered(writes));
        let mut reads = prefixes::without_covered(reads);
        reads.retain(|read| !prefixes::cover(&writes, read));
        Self { reads: prefixes::bounded(reads), writes, dependencies }
    }

    /// Whether it may write everything.
    pub fn writes_everything(&self) -> bool {
        self.writes().contains(&AddressPrefix::everything())
    }

    /// May access everything, so that it conflicts with every batch.
    pub fn everything() -> Self {
        Self::new([], [AddressPrefix::everything()], [])
    }

    /// The prefixes that are read but not written, in order. None covers another one.
    pub fn reads(&self) -> &[AddressPrefix] {
        &self.reads
    }

    /// The prefixes that are written, and may be read, in order. None covers another one.
    pub fn writes(&self) -> &[AddressPrefix] {
        &self.writes
    }

    /// The transactions of other batches that must be applied before this batch, in order.
    pub fn dependencies(&self) -> &[ItemId] {
        &self.dependencies
    }

    /// Whether the order of the two batches matters: one writes what the other one reads or writes.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        self.conflict_with(other).is_some()
    }

    /// An address that makes the order of the two batches matter.
    pub fn conflict_with<'a>(&'a self, other: &'a Self) -> Option<&'a AddressPrefix> {
        prefixes::common(&self.writes, &other.writes)
            .or_else(|| prefixes::common(&self.writes, &other.reads))
            .or_else(|| prefixes::common(&self.reads, &other.writes))
    }
}

#[cfg(test)]
mod tests;
