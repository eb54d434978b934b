//! Lists of prefixes.

use crate::batches::{AddressPrefix, DeclaredAccess};

/// Sorts the prefixes and removes those that another one covers. In this order, a prefix comes before those that it
/// covers.
pub fn without_covered(prefixes: impl IntoIterator<Item = AddressPrefix>) -> Vec<AddressPrefix> {
    let mut sorted: Vec<AddressPrefix> = prefixes.into_iter().collect();
    sorted.sort_unstable();
    sorted.dedup_by(|next, kept| kept.covers(next));
    sorted
}

/// Reduces prefixes, which are sorted and do not cover each other, to at most [`DeclaredAccess::MOST_PREFIXES`] that
/// cover all of them. Neighbors are replaced by their longest common beginnings.
pub fn bounded(mut sorted: Vec<AddressPrefix>) -> Vec<AddressPrefix> {
    let excess = sorted.len().saturating_sub(DeclaredAccess::MOST_PREFIXES);
    let mut common: Vec<usize> =
        sorted.windows(2).map(|pair| pair[0].common_length(&pair[1])).collect();
    common.sort_unstable_by(|a, b| b.cmp(a));
    // Neighbors that have at least this much in common are merged, which removes one prefix for each pair.
    let Some(&length) = excess.checked_sub(1).and_then(|last| common.get(last)) else {
        return sorted;
    };
    sorted.dedup_by(|next, kept| {
        let is_common = kept.common_length(next) >= length;
        if is_common {
            *kept = kept.shortened(length);
        }
        is_common
    });
    sorted
}

/// Whether one of the prefixes, which are sorted and do not cover each other, covers `prefix`. Only the last one that
/// does not come after it can.
pub fn cover(sorted: &[AddressPrefix], prefix: &AddressPrefix) -> bool {
    let after = sorted.partition_point(|one| one <= prefix);
    sorted[..after].last().is_some_and(|one| one.covers(prefix))
}

/// A prefix of one list that is covered by a prefix of the other list.
pub fn common<'a>(
    some: &'a [AddressPrefix],
    others: &'a [AddressPrefix],
) -> Option<&'a AddressPrefix> {
    let longer = |one: &'a AddressPrefix, other: &'a AddressPrefix| {
        if one.covers(other) { other } else { one }
    };
    some.iter().find_map(|one| {
        others.iter().find(|other| one.overlaps(other)).map(|other| longer(one, other))
    })
}
