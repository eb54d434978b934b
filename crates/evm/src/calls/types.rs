//! The types of parameters.

use std::borrow::Cow;

use alloy_dyn_abi::{DynSolType, Specifier};
use grid_batch_core::Excerpt;

/// The longest text of a function, an event or an error. A parser needs more stack the deeper its types are nested.
pub(super) const LONGEST_DECLARATION: usize = 2_000;

/// How deeply arrays and tuples may be nested.
const DEEPEST: usize = 16;

/// The type of a parameter, whose text is the one in the signature.
pub(super) fn resolve(
    parameter: &impl Specifier<DynSolType>,
    text: Cow<'_, str>,
) -> Result<DynSolType, String> {
    let unknown = || format!("{} is not a type of the ABI", Excerpt::of(&text));
    let found = parameter.resolve().map_err(|_| unknown())?;
    if found.nesting_depth() > DEEPEST {
        return Err(format!("{} is nested too deeply", Excerpt::of(&text)));
    }
    // A selector is a hash of the text, so uint08 in the place of uint8 would call another function.
    if !is_supported(&found) || name(&found) != text {
        return Err(unknown());
    }
    Ok(found)
}

/// The name of a type in signatures.
pub(super) fn name(of: &DynSolType) -> String {
    // The library writes a tuple of one type as (type,).
    of.sol_type_name().replace(",)", ")")
}

/// References to functions are not supported, because hardly any contract has them.
fn is_supported(found: &DynSolType) -> bool {
    match found {
        DynSolType::Function => false,
        DynSolType::Array(item) | DynSolType::FixedArray(item, _) => is_supported(item),
        DynSolType::Tuple(members) => !members.is_empty() && members.iter().all(is_supported),
        _ => true,
    }
}

/// A text that the parser may read.
pub(super) fn readable(text: &str) -> Result<&str, String> {
    if text.len() > LONGEST_DECLARATION {
        return Err(format!("it is longer than {LONGEST_DECLARATION} bytes"));
    }
    // The parser takes any name with a dot for uint8, as if it were that of an enum.
    if text.contains('.') {
        return Err(
            "names with a dot are not supported; write uint8 for an enum, and a tuple for a struct"
                .to_owned(),
        );
    }
    Ok(text.trim().trim_end_matches(';').trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_json_abi::Function;

    fn first(parameters: &str) -> Result<DynSolType, String> {
        let function = Function::parse(&format!("f({parameters})")).unwrap();
        resolve(&function.inputs[0], function.inputs[0].selector_type())
    }

    #[test]
    fn types_keep_their_names() {
        for text in [
            "address",
            "bool",
            "bytes",
            "bytes32",
            "string",
            "int8",
            "uint256",
            "uint256[3][]",
            "(address,(bool,bytes)[2])[]",
            "(string)",
            "((uint8)[])",
        ] {
            assert_eq!(name(&first(text).unwrap()), text);
        }
        assert_eq!(name(&first("uint[] memory amounts").unwrap()), "uint256[]");
        assert_eq!(name(&first("tuple(int,uint) pair").unwrap()), "(int256,uint256)");
    }

    #[test]
    fn other_types_are_refused() {
        for text in [
            "uint08",
            "uint7",
            "uint264",
            "bytes0",
            "bytes33",
            "bytes032",
            "IERC20",
            "function",
            "fixed",
            "()",
            "()[]",
            "(address,())",
            "(uint08)[]",
            "function[2]",
        ] {
            let error = first(text).unwrap_err();
            assert!(error.ends_with("is not a type of the ABI"), "{text}: {error}");
        }
        let error = first(&format!("bool{}", "[]".repeat(17))).unwrap_err();
        assert!(error.ends_with("is nested too deeply"), "{error}");
    }

    #[test]
    fn unreadable_text_is_refused() {
        assert_eq!(readable(" event E(); "), Ok("event E()"));
        assert!(readable("f(Token.Kind)").unwrap_err().contains("dot"));
        assert!(readable(&"f".repeat(2_001)).unwrap_err().contains("2000 bytes"));
    }
}
