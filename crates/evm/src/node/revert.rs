use alloy_primitives::hex;
use alloy_sol_types::{Panic, Revert, SolError};
use grid_batch_support::one_line;
use grid_batch_withdrawals::Decoded;

use super::error::NodeError;
use crate::calls::decode_error;

/// geth's error code of a reverted call.
const REVERTED: i64 = 3;

/// The messages of nodes about calls that fail in another way, and the reasons that are reported for them.
const OTHER_FAILURES: [(&str, &str); 5] = [
    ("out of gas", "it needs more gas than allowed"),
    ("outofgas", "it needs more gas than allowed"),
    ("sentryoog", "it needs more gas than allowed"),
    ("gas required exceeds", "it needs more gas than allowed"),
    ("invalid opcode", "it executes an invalid instruction"),
];

/// How many bytes of a custom error are shown.
const SHOWN: usize = 68;

/// Why a call failed, if the node's error is about the call itself.
pub(crate) fn revert_reason(error: &NodeError) -> Option<String> {
    let NodeError::Rpc { code, message, data } = error else { return None };
    let lower = message.to_lowercase();
    if let Some((_, reason)) = OTHER_FAILURES.iter().find(|(words, _)| lower.contains(words)) {
        return Some((*reason).to_owned());
    }
    let is_revert =
        *code == REVERTED || lower.contains("revert") || lower.contains("vm execution error");
    if !is_revert {
        return None;
    }
    let reason = data.as_ref().and_then(|data| from_data(data)).or_else(|| from_message(message));
    Some(reason.unwrap_or_else(|| "no reason given".to_owned()))
}

/// Why a call failed, with an error of the contract as these declarations name it.
pub(crate) fn call_failure(error: &NodeError, abi: &[String]) -> String {
    let declared = match error {
        NodeError::Rpc { data: Some(data), .. } => decode_error(abi, data),
        _ => None,
    };
    match declared {
        Some(Decoded { name, values }) => {
            let values: Vec<String> =
                values.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            one_line(format!("{name}({})", values.join(", ")))
        }
        None => revert_reason(error).unwrap_or_else(|| error.to_string()),
    }
}

/// The reason in the data that a reverted call returned.
fn from_data(data: &[u8]) -> Option<String> {
    if data.is_empty() {
        return None;
    }
    if let Ok(revert) = Revert::abi_decode(data) {
        return Some(one_line(&revert.reason)).filter(|reason| !reason.is_empty());
    }
    if let Ok(panic) = Panic::abi_decode(data) {
        return Some(panic_text(&panic));
    }
    Some(custom_error(data))
}

fn panic_text(panic: &Panic) -> String {
    match panic.kind() {
        Some(kind) => format!("{} (panic {:#04x})", kind.as_str(), panic.code),
        None => format!("panic {:#x}", panic.code),
    }
}

/// A custom error in hex, because its name is only defined in the contract.
fn custom_error(data: &[u8]) -> String {
    let shown = &data[..data.len().min(SHOWN)];
    let more = if shown.len() < data.len() { "…" } else { "" };
    match shown.split_first_chunk::<4>() {
        Some((selector, [])) => format!("custom error {}", hex::encode_prefixed(selector)),
        Some((selector, arguments)) => format!(
            "custom error {} with {}{more}",
            hex::encode_prefixed(selector),
            hex::encode_prefixed(arguments)
        ),
        None => format!("data {}", hex::encode_prefixed(shown)),
    }
}

/// The reason in the node's message.
fn from_message(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("revert")?;
    let reason = rest.strip_prefix("ed").unwrap_or(rest).trim_start_matches([':', ' ']);
    Some(one_line(reason)).filter(|reason| !reason.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Bytes, U256};
    use proptest::prelude::*;

    fn rpc(code: i64, message: &str, data: impl Into<Option<Vec<u8>>>) -> NodeError {
        let data = data.into().map(Bytes::from);
        NodeError::Rpc { code, message: message.to_owned(), data }
    }

    fn reason_of(data: Vec<u8>) -> String {
        revert_reason(&rpc(3, "execution reverted", data)).unwrap()
    }

    #[test]
    fn reason_is_read_from_data() {
        let data = Revert::from("NOT_OWNER").abi_encode();
        assert_eq!(
            revert_reason(&rpc(3, "execution reverted: NOT_OWNER", data.clone())).unwrap(),
            "NOT_OWNER"
        );
        assert_eq!(revert_reason(&rpc(-32015, "VM execution error.", data)).unwrap(), "NOT_OWNER");
    }

    #[test]
    fn long_reason_is_cut_to_one_line() {
        let reason = reason_of(Revert::from("a\n\u{7}b ".repeat(1_000)).abi_encode());
        assert!(reason.starts_with("a b a b"), "{reason}");
        assert!(reason.chars().count() < 600, "{reason}");
    }

    #[test]
    fn panic_is_described() {
        let of = |code: u64| reason_of(Panic { code: U256::from(code) }.abi_encode());
        assert_eq!(of(0x01), "assertion failed (panic 0x01)");
        assert_eq!(of(0x11), "arithmetic underflow or overflow (panic 0x11)");
        assert_eq!(of(0x12), "division or modulo by zero (panic 0x12)");
        assert_eq!(of(0x99), "panic 0x99");
    }

    #[test]
    fn custom_error_is_shown_as_hex() {
        assert_eq!(reason_of(vec![0xde, 0xad, 0xbe, 0xef]), "custom error 0xdeadbeef");
        assert_eq!(reason_of(vec![0xde, 0xad, 0xbe, 0xef, 7]), "custom error 0xdeadbeef with 0x07");
        assert_eq!(reason_of(vec![7]), "data 0x07");
        let long = reason_of(vec![7; 100_000]);
        assert!(long.ends_with('…') && long.chars().count() < 200, "{long}");
    }

    #[test]
    fn reason_is_read_from_the_message() {
        for (code, message, expected) in [
            (3, "execution reverted: NOT_OWNER", "NOT_OWNER"),
            (-32000, "execution reverted: NOT_OWNER", "NOT_OWNER"),
            (-32000, "execution reverted", "no reason given"),
            (3, "", "no reason given"),
            (-32000, "VM Exception while processing transaction: revert NOT_OWNER", "NOT_OWNER"),
            (-32000, "Execution reverted", "no reason given"),
            (-32000, "out of gas", "it needs more gas than allowed"),
            (-32000, "gas required exceeds allowance (1)", "it needs more gas than allowed"),
            (-32000, "invalid opcode: INVALID", "it executes an invalid instruction"),
        ] {
            assert_eq!(revert_reason(&rpc(code, message, None)).unwrap(), expected, "{message}");
        }
        let empty = Revert::from("").abi_encode();
        assert_eq!(reason_of(empty), "no reason given");
    }

    #[test]
    fn other_errors_are_not_reverts() {
        for error in [
            rpc(-32000, "header not found", None),
            rpc(-32601, "the method eth_call does not exist", None),
            rpc(-32000, "insufficient funds for transfer", None),
            rpc(-32000, "header not found", vec![8; 40]),
            NodeError::NoResponse("reverted".to_owned()),
            NodeError::Status { status: 502, text: "execution reverted".to_owned() },
        ] {
            assert_eq!(revert_reason(&error), None, "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_data_has_a_short_printable_text(
            data in prop::collection::vec(any::<u8>(), 0..300),
            selector in prop::option::of(prop::sample::select(vec![Revert::SELECTOR, Panic::SELECTOR])),
        ) {
            let data: Vec<u8> = selector.into_iter().flatten().chain(data).collect();
            let text = reason_of(data);
            prop_assert!(!text.is_empty() && text.chars().count() < 600);
            prop_assert!(!text.chars().any(char::is_control));
        }
    }
}
