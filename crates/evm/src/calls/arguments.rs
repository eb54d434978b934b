//! The arguments of a function, from JSON.

use alloy_dyn_abi::{DynSolType, DynSolValue};
use alloy_primitives::{B256, I256, Sign, U256};
use grid_batch_core::Excerpt;
use serde_json::Value;

use super::{
    parse::{parse_bytes, parse_number},
    types,
};
use crate::values::parse_address;

/// Beyond it, many JSON libraries round numbers without notice.
const LARGEST_JSON_NUMBER: u64 = (1 << 53) - 1;

/// The values of these types. The error says which argument breaks a rule.
pub(super) fn values(types: &[DynSolType], given: &[Value]) -> Result<Vec<DynSolValue>, String> {
    if types.len() != given.len() {
        let (takes, given) = (types.len(), given.len());
        return Err(format!("there are {given} arguments; the function takes {takes}"));
    }
    items(types, given, "arguments")
}

fn items<'a>(
    types: impl IntoIterator<Item = &'a DynSolType>,
    given: &[Value],
    path: &str,
) -> Result<Vec<DynSolValue>, String> {
    let pairs = types.into_iter().zip(given).enumerate();
    pairs.map(|(at, (wanted, given))| value(wanted, given, &format!("{path}[{at}]"))).collect()
}

/// The value of one argument, or of an item in it.
fn value(wanted: &DynSolType, given: &Value, path: &str) -> Result<DynSolValue, String> {
    match wanted {
        DynSolType::Array(item) => {
            let given = list(wanted, given, None, path)?;
            Ok(DynSolValue::Array(items(std::iter::repeat_n(&**item, given.len()), given, path)?))
        }
        DynSolType::FixedArray(item, length) => {
            let given = list(wanted, given, Some(*length), path)?;
            let types = std::iter::repeat_n(&**item, given.len());
            Ok(DynSolValue::FixedArray(items(types, given, path)?))
        }
        DynSolType::Tuple(members) => {
            let given = list(wanted, given, Some(members.len()), path)?;
            Ok(DynSolValue::Tuple(items(members, given, path)?))
        }
        _ => single(wanted, given).map_err(|rule| at(wanted, path, &rule)),
    }
}

/// The items of an array or a tuple.
fn list<'a>(
    wanted: &DynSolType,
    given: &'a Value,
    length: Option<usize>,
    path: &str,
) -> Result<&'a [Value], String> {
    let items = given.as_array().ok_or_else(|| at(wanted, path, "it must be an array"))?;
    match length {
        Some(length) if length != items.len() => {
            let rule = format!("it has {} items; it must have {length}", items.len());
            Err(at(wanted, path, &rule))
        }
        _ => Ok(items),
    }
}

fn at(wanted: &DynSolType, path: &str, rule: &str) -> String {
    format!("{path} ({}): {rule}", types::name(wanted))
}

/// A value that is no array and no tuple.
fn single(wanted: &DynSolType, given: &Value) -> Result<DynSolValue, String> {
    match wanted {
        DynSolType::Bool => boolean(given).map(DynSolValue::Bool),
        DynSolType::Uint(bits) => unsigned(given, *bits).map(|it| DynSolValue::Uint(it, *bits)),
        DynSolType::Int(bits) => signed(given, *bits).map(|it| DynSolValue::Int(it, *bits)),
        DynSolType::Address => {
            let address = parse_address(text(given)?).map_err(|error| error.to_string())?;
            Ok(DynSolValue::Address(address))
        }
        DynSolType::FixedBytes(length) => {
            fixed_bytes(given, *length).map(|it| DynSolValue::FixedBytes(it, *length))
        }
        DynSolType::Bytes => parse_bytes(text(given)?).map(DynSolValue::Bytes),
        DynSolType::String => text(given).map(|it| DynSolValue::String(it.to_owned())),
        _ => Err("the type is not supported".to_owned()),
    }
}

fn text(given: &Value) -> Result<&str, String> {
    given.as_str().ok_or_else(|| "it must be a text".to_owned())
}

fn boolean(given: &Value) -> Result<bool, String> {
    match given.as_str() {
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        _ => given.as_bool().ok_or_else(|| "it must be true or false".to_owned()),
    }
}

fn unsigned(given: &Value, bits: usize) -> Result<U256, String> {
    let number = parse_number(&digits(given)?)?;
    if number.bit_len() > bits {
        return Err(format!("{} has more than {bits} bits", Excerpt::of(&number.to_string())));
    }
    Ok(number)
}

fn signed(given: &Value, bits: usize) -> Result<I256, String> {
    let digits = digits(given)?;
    let (sign, absolute) = match digits.strip_prefix('-') {
        Some(absolute) => (Sign::Negative, absolute),
        None => (Sign::Positive, digits.as_str()),
    };
    let number = I256::checked_from_sign_and_abs(sign, parse_number(absolute)?);
    let fits = |number: &I256| usize::try_from(number.bits()).is_ok_and(|used| used <= bits);
    number
        .filter(fits)
        .ok_or_else(|| format!("{} does not fit into {bits} bits", Excerpt::of(&digits)))
}

/// The digits of a number, which may be a text.
fn digits(given: &Value) -> Result<String, String> {
    match given {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) if is_exact(number) => Ok(number.to_string()),
        Value::Number(number) => Err(format!(
            "{number} is not a whole number up to {LARGEST_JSON_NUMBER}; write others as texts"
        )),
        _ => Err("it must be a number, or a text of decimal digits".to_owned()),
    }
}

fn is_exact(number: &serde_json::Number) -> bool {
    let absolute = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
    absolute.is_some_and(|absolute| absolute <= LARGEST_JSON_NUMBER)
}

fn fixed_bytes(given: &Value, length: usize) -> Result<B256, String> {
    let bytes = parse_bytes(text(given)?)?;
    if bytes.len() != length || length > B256::len_bytes() {
        return Err(format!("it has {} bytes; it must have {length}", bytes.len()));
    }
    Ok(B256::right_padding_from(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(wanted: &str, given: Value) -> Result<DynSolValue, String> {
        values(&[wanted.parse().unwrap()], &[given]).map(|mut values| values.remove(0))
    }

    #[test]
    fn numbers_are_numbers_or_texts() {
        let large = U256::MAX.to_string();
        for (wanted, given, expected) in [
            ("uint8", json!(255), DynSolValue::Uint(U256::from(255), 8)),
            ("uint8", json!("0255"), DynSolValue::Uint(U256::from(255), 8)),
            ("uint256", json!(large), DynSolValue::Uint(U256::MAX, 256)),
            ("int8", json!(-128), DynSolValue::Int(I256::try_from(-128).unwrap(), 8)),
            ("int8", json!("127"), DynSolValue::Int(I256::try_from(127).unwrap(), 8)),
            ("int256", json!("-0"), DynSolValue::Int(I256::ZERO, 256)),
            ("int256", json!(I256::MIN.to_string()), DynSolValue::Int(I256::MIN, 256)),
        ] {
            assert_eq!(one(wanted, given.clone()), Ok(expected), "{wanted} {given}");
        }
    }

    #[test]
    fn other_numbers_are_refused() {
        let large = U256::MAX.to_string();
        for (wanted, given, expected) in [
            ("uint8", json!(256), "\"256\" has more than 8 bits"),
            ("uint256", json!(-1), "\"-1\" is not a whole number"),
            ("uint256", json!("1 ether"), "\"1 ether\" is not a whole number"),
            ("uint256", json!(1.5), "1.5 is not a whole number"),
            ("uint256", json!(9_007_199_254_740_992_u64), "write others as texts"),
            ("uint256", json!(true), "it must be a number, or a text"),
            ("uint256", json!(null), "it must be a number, or a text"),
            ("int8", json!(128), "\"128\" does not fit into 8 bits"),
            ("int8", json!(-129), "\"-129\" does not fit into 8 bits"),
            ("int256", json!(large), "does not fit into 256 bits"),
            ("int256", json!("--1"), "\"-1\" is not a whole number"),
        ] {
            let error = one(wanted, given).unwrap_err();
            assert!(error.starts_with(&format!("arguments[0] ({wanted}): ")), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn other_values_are_refused() {
        for (wanted, given, expected) in [
            ("bool", json!("yes"), "it must be true or false"),
            ("bool", json!(1), "it must be true or false"),
            ("address", json!("0x00"), "an address is 0x and 40 hex digits"),
            ("address", json!(0), "it must be a text"),
            ("address", json!("0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"), "checksum"),
            ("bytes", json!("00"), "data is 0x and two hex digits"),
            ("bytes4", json!("0x0000"), "it has 2 bytes; it must have 4"),
            ("string", json!(5), "it must be a text"),
            ("bool[]", json!("[true]"), "it must be an array"),
            ("bool[2]", json!([true]), "it has 1 items; it must have 2"),
            ("(bool,bool)", json!({"a": true, "b": true}), "it must be an array"),
        ] {
            let error = one(wanted, given).unwrap_err();
            assert!(error.starts_with(&format!("arguments[0] ({wanted}): ")), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn error_has_the_place_of_the_item() {
        let given = json!([["0x", [1]], ["0x00", [1, -2]]]);
        let error = one("(bytes,uint8[])[]", given).unwrap_err();
        assert!(error.starts_with("arguments[0][1][1][1] (uint8): \"-2\" is not"), "{error}");
    }

    #[test]
    fn number_of_arguments_is_checked() {
        let error = values(&[DynSolType::Bool], &[]).unwrap_err();
        assert_eq!(error, "there are 0 arguments; the function takes 1");
    }

    #[test]
    fn booleans_and_texts_are_taken_as_they_are() {
        assert_eq!(one("bool", json!(true)), Ok(DynSolValue::Bool(true)));
        assert_eq!(one("bool", json!("false")), Ok(DynSolValue::Bool(false)));
        let text = " \"quoted\", [and] (more) ";
        assert_eq!(one("string", json!(text)), Ok(DynSolValue::String(text.to_owned())));
    }
}
