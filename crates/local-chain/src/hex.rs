use alloy_primitives::{Bytes, U256};
use serde_json::Value;

use crate::ChainError;

/// Parses a number in a node's response, such as `"0x1f"`.
pub fn number(what: &'static str, value: &Value) -> Result<u64, ChainError> {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or_else(|| {
        ChainError::InvalidResponse { what, expected: "a number in hex", value: value.clone() }
    })
}

/// Parses words of 32 bytes in a node's response, after skipping some bytes.
pub(crate) fn words<const N: usize>(
    what: &'static str,
    value: &Value,
    skip: usize,
) -> Result<[U256; N], ChainError> {
    let bytes = value.as_str().and_then(|text| text.parse::<Bytes>().ok());
    let words = bytes
        .as_deref()
        .and_then(|bytes| bytes.get(skip..))
        .map(|bytes| bytes.chunks_exact(32).map(U256::from_be_slice).collect::<Vec<_>>());
    words.and_then(|words| words.try_into().ok()).ok_or_else(|| ChainError::InvalidResponse {
        what,
        expected: "words of 32 bytes in hex",
        value: value.clone(),
    })
}

/// Parses a text in a node's response.
pub(crate) fn text(what: &'static str, value: &Value) -> Result<String, ChainError> {
    let text = value.as_str().map(ToOwned::to_owned);
    text.ok_or_else(|| ChainError::InvalidResponse {
        what,
        expected: "a text",
        value: value.clone(),
    })
}
