//! Decoded values as texts.

use std::collections::BTreeMap;

use alloy_dyn_abi::DynSolValue;
use alloy_primitives::hex;

/// The text of a value.
pub(super) fn text(value: &DynSolValue) -> String {
    match value {
        DynSolValue::String(text) => text.clone(),
        value => item(value),
    }
}

/// The text of a value in an array or a tuple, where texts are quoted: one could contain a comma.
fn item(value: &DynSolValue) -> String {
    match value {
        DynSolValue::Bool(value) => value.to_string(),
        DynSolValue::Int(value, _) => value.to_string(),
        DynSolValue::Uint(value, _) => value.to_string(),
        DynSolValue::Address(address) => address.to_string(),
        DynSolValue::FixedBytes(word, length) => {
            hex::encode_prefixed(&word[..word.len().min(*length)])
        }
        DynSolValue::Bytes(bytes) => hex::encode_prefixed(bytes),
        DynSolValue::String(text) => format!("{text:?}"),
        DynSolValue::Array(items) | DynSolValue::FixedArray(items) => format!("[{}]", list(items)),
        DynSolValue::Tuple(members) => format!("({})", list(members)),
        other => hex::encode_prefixed(other.abi_encode()),
    }
}

fn list(values: &[DynSolValue]) -> String {
    values.iter().map(item).collect::<Vec<_>>().join(", ")
}

/// The texts of values by the names of their parameters. A parameter without a name, or with one of another, has its
/// position, from 0.
pub(super) fn named<'a>(
    names: impl IntoIterator<Item = &'a str>,
    values: &[DynSolValue],
) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (at, (name, value)) in names.into_iter().zip(values).enumerate() {
        let is_usable = !name.is_empty() && !all.contains_key(name);
        let name = if is_usable { name.to_owned() } else { at.to_string() };
        all.insert(name, text(value));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Address, B256, I256, U256};

    #[test]
    fn values_have_readable_texts() {
        let number = |number: u64| DynSolValue::Uint(U256::from(number), 256);
        let string = |text: &str| DynSolValue::String(text.to_owned());
        let address: Address = "0xd8da6bf26964af9d7eed9e03e53415d37aa96045".parse().unwrap();
        let fixed = DynSolValue::FixedBytes(B256::right_padding_from(&[1, 2]), 2);
        for (value, expected) in [
            (DynSolValue::Bool(true), "true"),
            (number(15), "15"),
            (DynSolValue::Int(I256::try_from(-15).unwrap(), 8), "-15"),
            (DynSolValue::Address(address), "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"),
            (fixed, "0x0102"),
            (DynSolValue::Bytes(vec![]), "0x"),
            (DynSolValue::Bytes(vec![255]), "0xff"),
            (string("a, \"b\""), "a, \"b\""),
            (DynSolValue::Array(vec![number(1), number(2)]), "[1, 2]"),
            (DynSolValue::FixedArray(vec![]), "[]"),
            (DynSolValue::Tuple(vec![string("a, b"), number(1)]), "(\"a, b\", 1)"),
            (DynSolValue::Tuple(vec![DynSolValue::Array(vec![number(1)])]), "([1])"),
        ] {
            assert_eq!(text(&value), expected);
        }
    }

    #[test]
    fn values_have_the_names_of_their_parameters() {
        let values: Vec<_> = (0..4).map(|it| DynSolValue::Uint(U256::from(it), 8)).collect();
        let texts = named(["a", "", "a", "b"], &values);
        let expected = [("1", "1"), ("2", "2"), ("a", "0"), ("b", "3")];
        assert_eq!(texts, expected.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
    }
}
