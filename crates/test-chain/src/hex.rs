use alloy_primitives::{Bytes, U256};
use serde_json::Value;

use crate::ChainError;

/// A number that a node wrote as hex, such as `"0x1f"`.
pub(crate) fn number(what: &'static str, value: &Value) -> Result<u64, ChainError> {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    digits
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(|| ChainError::Answer { what, rule: "a number in hex", value: value.clone() })
}

/// Words of 32 bytes that a node wrote as hex, behind so many bytes that are left out.
pub(crate) fn words<const N: usize>(
    what: &'static str,
    value: &Value,
    behind: usize,
) -> Result<[U256; N], ChainError> {
    let bytes = value.as_str().and_then(|text| text.parse::<Bytes>().ok());
    let words = bytes
        .as_deref()
        .and_then(|bytes| bytes.get(behind..))
        .map(|bytes| bytes.chunks_exact(32).map(U256::from_be_slice).collect::<Vec<_>>());
    words.and_then(|words| words.try_into().ok()).ok_or_else(|| ChainError::Answer {
        what,
        rule: "words of 32 bytes in hex, as the pool has them",
        value: value.clone(),
    })
}

/// A text that a node gave.
pub(crate) fn text(what: &'static str, value: &Value) -> Result<String, ChainError> {
    let text = value.as_str().map(ToOwned::to_owned);
    text.ok_or_else(|| ChainError::Answer { what, rule: "a text", value: value.clone() })
}
