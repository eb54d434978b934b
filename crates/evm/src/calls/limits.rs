//! How much memory decoding may take. Arrays in encoded data may overlap, so values may take far more memory than the
//! data, and a contract chooses the data.

use alloy_dyn_abi::{DynSolType, DynSolValue};
use grid_batch_core::Excerpt;

use super::types;

/// Longer data is not decoded.
pub(super) const LONGEST_DATA: usize = 8 * 1024;

/// How deeply values of any length may be nested.
const MOST_LENGTHS: usize = 3;

/// The largest type of a fixed length, in words. No longer data is decoded.
const MOST_WORDS: usize = LONGEST_DATA / WORD;

const WORD: usize = 32;

/// Checks the type of a parameter that is decoded.
pub(super) fn check(decoded: &DynSolType) -> Result<(), String> {
    let rule = if lengths(decoded) > MOST_LENGTHS {
        format!("more than {MOST_LENGTHS} arrays, bytes or texts of any length in one another")
    } else if words(decoded) > MOST_WORDS {
        format!("more than {MOST_WORDS} values")
    } else {
        return Ok(());
    };
    Err(format!("{} has {rule}", Excerpt::of(&types::name(decoded))))
}

/// How many values of any length are nested in one another.
fn lengths(of: &DynSolType) -> usize {
    match of {
        DynSolType::Bytes | DynSolType::String => 1,
        DynSolType::Array(item) => 1 + lengths(item),
        DynSolType::FixedArray(item, _) => lengths(item),
        DynSolType::Tuple(members) => members.iter().map(lengths).max().unwrap_or_default(),
        _ => 0,
    }
}

/// How many words a value has in which each array of any length has one item. A decoder takes memory for them before
/// it looks at the data.
fn words(of: &DynSolType) -> usize {
    match of {
        DynSolType::Array(item) => words(item),
        DynSolType::FixedArray(item, length) => words(item).saturating_mul(*length),
        DynSolType::Tuple(members) => {
            members.iter().fold(0, |sum: usize, member| sum.saturating_add(words(member)))
        }
        _ => 1,
    }
}

/// Whether the values are larger than the data from which they were decoded.
pub(super) fn overlap(values: &[DynSolValue], data: &[u8]) -> bool {
    size(values) > data.len()
}

fn size(values: &[DynSolValue]) -> usize {
    let of = |value: &DynSolValue| match value {
        DynSolValue::Bytes(bytes) => bytes.len(),
        DynSolValue::String(text) => text.len(),
        DynSolValue::Array(items) | DynSolValue::FixedArray(items) => size(items),
        DynSolValue::Tuple(members) => size(members),
        _ => WORD,
    };
    values.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_of_any_size_is_refused() {
        for (text, expected) in [
            ("bool[][][][]", "has more than 3 arrays, bytes or texts of any length"),
            ("(string,bool)[][][]", "has more than 3 arrays, bytes or texts of any length"),
            ("bool[257]", "more than 256 values"),
            ("bool[4294967296][4294967296][]", "more than 256 values"),
            ("(bool[128],bytes32[129])", "more than 256 values"),
        ] {
            let error = check(&text.parse().unwrap()).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        for text in ["bool[256]", "bool[][][]", "(bytes[],string)[]", "(bool[128],bytes32[128])"] {
            assert_eq!(check(&text.parse().unwrap()), Ok(()), "{text}");
        }
    }
}
