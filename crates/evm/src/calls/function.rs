//! The data of a function call.

use alloy_dyn_abi::{DynSolType, DynSolValue};
use alloy_json_abi::Function;
use grid_batch_withdrawals::{CallError, FunctionCall};

use super::{arguments, request::refused, types};

/// The data that calls the function.
pub(super) fn encode(call: &FunctionCall) -> Result<Vec<u8>, CallError> {
    let function = parse(&call.signature).map_err(|rule| refused("call.signature", rule))?;
    let types = types(&function).map_err(|rule| refused("call.signature", rule))?;
    let values = arguments::values(&types, &call.arguments)
        .map_err(|rule| refused("call.arguments", rule))?;
    let arguments = DynSolValue::Tuple(values).abi_encode_params();
    Ok([function.selector().as_slice(), &arguments].concat())
}

fn parse(signature: &str) -> Result<Function, String> {
    Function::parse(types::readable(signature)?).map_err(|_| {
        "it is not a function, such as transfer(address,uint256); members of tuples have no names"
            .to_owned()
    })
}

fn types(function: &Function) -> Result<Vec<DynSolType>, String> {
    let inputs = function.inputs.iter();
    inputs.map(|input| types::resolve(input, input.selector_type())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{Address, U256, hex};
    use proptest::{collection::vec, prelude::*};
    use serde_json::{Value, json};

    fn encoded(signature: &str, arguments: &Value) -> Result<String, CallError> {
        let arguments = arguments.as_array().unwrap().clone();
        let call = FunctionCall { signature: signature.to_owned(), arguments };
        encode(&call).map(hex::encode)
    }

    #[test]
    fn transfer_of_a_token_is_encoded() {
        let arguments = json!(["0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045", "5"]);
        for signature in [
            "transfer(address,uint256)",
            "transfer(address to, uint256 amount)",
            "transfer(address to, uint amount)",
            "function transfer(address,uint256)",
            " function transfer(address to, uint256 amount) external returns (bool); ",
        ] {
            let expected = "a9059cbb\
                000000000000000000000000d8da6bf26964af9d7eed9e03e53415d37aa96045\
                0000000000000000000000000000000000000000000000000000000000000005";
            assert_eq!(encoded(signature, &arguments).as_deref(), Ok(expected), "{signature}");
        }
    }

    /// From the examples in the specification of the ABI.
    #[test]
    fn arguments_are_encoded_as_specified() {
        let word = |number: u64| format!("{number:064x}");
        let text = |text: &str| format!("{:0<64}", hex::encode(text));
        assert_eq!(
            encoded("baz(uint32,bool)", &json!([69, true])),
            Ok(format!("cdcd77c0{}{}", word(69), word(1)))
        );
        assert_eq!(
            encoded("bar(bytes3[2])", &json!([["0x616263", "0x646566"]])),
            Ok(format!("fce353f6{}{}", text("abc"), text("def")))
        );
        let words = [96, 1, 160, 4].map(word).concat();
        let end = [3, 1, 2, 3].map(word).concat();
        assert_eq!(
            encoded("sam(bytes,bool,uint256[])", &json!(["0x64617665", true, [1, 2, 3]])),
            Ok(format!("a5643bf2{words}{}{end}", text("dave")))
        );
    }

    #[test]
    fn tuples_and_arrays_are_encoded() {
        let word = |number: u64| format!("{number:064x}");
        let data = encoded("f((uint8,bool)[2],(int16))", &json!([[[1, true], [2, false]], [-1]]));
        let words = [1, 1, 2, 0].map(word).concat();
        assert_eq!(data.unwrap()[8..], format!("{words}{}", "f".repeat(64)));
        let data = encoded("f((string)[])", &json!([[["a"]]])).unwrap();
        let words = [32, 1, 32, 32, 1].map(word).concat();
        assert_eq!(data[8..], format!("{words}{:0<64}", "61"));
    }

    #[test]
    fn function_without_arguments_is_its_selector() {
        assert_eq!(encoded("totalSupply()", &json!([])).as_deref(), Ok("18160ddd"));
    }

    #[test]
    fn other_signatures_are_refused() {
        for (signature, expected) in [
            ("", "it is not a function"),
            ("transfer", "it is not a function"),
            ("transfer(address", "it is not a function"),
            ("transfer(address,uint256) extra", "it is not a function"),
            ("event f()", "it is not a function"),
            ("f()\u{e9}", "it is not a function"),
            ("f((address a, uint256 b) pair)", "members of tuples have no names"),
            ("f(IERC20 token)", "\"IERC20\" is not a type"),
            ("f(Token.Kind)", "names with a dot"),
            ("Token.f()", "names with a dot"),
            (&format!("f({})", "(".repeat(1_500)), "it is not a function"),
            (&format!("f({})", "bool,".repeat(1_000)), "longer than 2000 bytes"),
            (&format!("f(bool{})", "[]".repeat(900)), "nested too deeply"),
        ] {
            let error = encoded(signature, &json!([])).unwrap_err();
            assert_eq!(error.field, "call.signature", "{signature}");
            assert!(error.rule.contains(expected), "{signature}: {error}");
        }
    }

    #[test]
    fn error_names_the_argument() {
        let error = encoded("f(address,uint8)", &json!([Address::ZERO, 256])).unwrap_err();
        let expected = "call.arguments: arguments[1] (uint8): \"256\" has more than 8 bits";
        assert_eq!(error.to_string(), expected);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "-?[0-9]{0,80}|0x[0-9a-f]{0,70}|\\PC{0,9}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |item| vec(item, 0..4).prop_map(Value::from))
    }

    const SIGNATURES: &str = "(function )?[a-z]{1,3}\\(((u?int(8|256)?|bytes[0-9]{0,2}|bool|address|string|\
                              \\((bool|string|uint8\\[\\]),int\\))(\\[[0-9]{0,10}\\]){0,3},?){0,3}\\)|\\PC{0,20}";

    proptest! {
        #[test]
        fn any_call_is_encoded_or_refused(
            signature in SIGNATURES,
            arguments in vec(any_json(), 0..4),
        ) {
            let fields = ["call.signature", "call.arguments"];
            match encode(&FunctionCall { signature, arguments }) {
                Ok(data) => prop_assert_eq!(data.len() % 32, 4),
                Err(error) => prop_assert!(fields.contains(&error.field) && !error.rule.is_empty()),
            }
        }

        #[test]
        fn address_and_number_round_trip(bytes in any::<[u8; 20]>(), limbs in any::<[u64; 4]>()) {
            let (address, number) = (Address::from(bytes), U256::from_limbs(limbs));
            let arguments = json!([address.to_string(), number.to_string()]);
            let data = encoded("transfer(address,uint256)", &arguments).unwrap();
            let expected = format!("a9059cbb{:0>64}{number:064x}", hex::encode(bytes));
            prop_assert_eq!(data, expected);
        }
    }
}
