//! Lists of prefixes.

use crate::{AddressPrefix, DeclaredAccess};

/// Sorted, without those that another one covers: it is before them in this order.
pub fn without_covered(prefixes: impl IntoIterator<Item = AddressPrefix>) -> Vec<AddressPrefix> {
    let mut sorted: Vec<AddressPrefix> = prefixes.into_iter().collect();
    sorted.sort_unstable();
    sorted.dedup_by(|next, kept| kept.covers(next));
    sorted
}

/// At most [`DeclaredAccess::MOST_PREFIXES`] that cover all of these, which are sorted and do not cover
/// each other. Neighbors are replaced by their longest common beginnings.
pub fn bounded(mut sorted: Vec<AddressPrefix>) -> Vec<AddressPrefix> {
    let excess = sorted.len().saturating_sub(DeclaredAccess::MOST_PREFIXES);
    let mut common: Vec<usize> =
        sorted.windows(2).map(|pair| pair[0].common_length(&pair[1])).collect();
    common.sort_unstable_by(|a, b| b.cmp(a));
    // Neighbors that have at least this much in common become one. That is one less for each pair.
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

/// Whether one of these, which are sorted and do not cover each other, covers `prefix`. Only the last one
/// that is not after it can.
pub fn cover(sorted: &[AddressPrefix], prefix: &AddressPrefix) -> bool {
    let after = sorted.partition_point(|one| one <= prefix);
    sorted[..after].last().is_some_and(|one| one.covers(prefix))
}

/// A prefix of one list that one of the other list covers.
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
