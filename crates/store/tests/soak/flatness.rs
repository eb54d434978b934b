//! Whether anything grows.

use std::collections::BTreeMap;

use crate::sizes::Sample;

/// The factor by which something may grow, because a vacuum runs only when a part of a table has changed, and pages are
/// allocated in groups.
const MARGIN: f64 = 1.3;
const ALLOWANCE: f64 = 1e6;

/// Compares the second half of the samples with the second quarter. During the first quarter, the database fills with
/// the data that retention keeps.
pub fn expect_flat(samples: &[Sample]) {
    let half = samples.len() / 2;
    let (before, after) = (largest(&samples[half / 2..half]), largest(&samples[half..]));
    let grown: Vec<String> = after
        .iter()
        .map(|(name, after)| (name, before.get(name).copied().unwrap_or(0), *after))
        .filter(|(_, before, after)| *after as f64 > *before as f64 * MARGIN + ALLOWANCE)
        .map(|(name, before, after)| format!("{name} grew from {before} to {after} bytes"))
        .collect();
    assert!(grown.is_empty(), "{}", grown.join("; "));
}

/// The largest size of everything in these samples.
fn largest(samples: &[Sample]) -> BTreeMap<&str, u64> {
    let mut largest = BTreeMap::new();
    for (name, size) in samples.iter().flat_map(|sample| &sample.sizes) {
        let known = largest.entry(name.as_str()).or_insert(0);
        *known = (*known).max(*size);
    }
    largest
}
