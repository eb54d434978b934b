//! Transactions of `intkey`, the transaction family that Sawtooth's own tutorials use.

use std::str::FromStr;

use grid_batch_core::Hex;
use serde_json::json;
use sha2::{Digest, Sha512};

use super::description::{PayloadJson, TransactionJson};

/// The operation of a transaction of `intkey`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Intkey {
    verb: &'static str,
    name: String,
    value: u32,
}

impl FromStr for Intkey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RULE: &str =
            "it must be set, inc or dec, a name of up to 20 characters, and a number: set a 5";
        let [verb, name, value] = text.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(RULE.to_owned());
        };
        let verb = ["set", "inc", "dec"].into_iter().find(|known| *known == verb);
        match (verb, name.chars().count(), value.parse()) {
            (Some(verb), 1..=20, Ok(value)) => Ok(Self { verb, name: name.to_owned(), value }),
            _ => Err(RULE.to_owned()),
        }
    }
}

impl Intkey {
    pub(super) fn transaction(&self) -> TransactionJson {
        let Self { verb, name, value } = self;
        TransactionJson {
            family: "intkey".to_owned(),
            version: "1.0".to_owned(),
            payload: PayloadJson::Cbor(json!({"Verb": verb, "Name": name, "Value": value})),
            inputs: vec![address(name)],
            outputs: vec![address(name)],
            ..TransactionJson::default()
        }
    }
}

/// The address at which the family stores a number.
fn address(name: &str) -> String {
    let hash = |text: &str| Hex(&Sha512::digest(text)).to_string();
    let (namespace, of_name) = (hash("intkey"), hash(name));
    format!("{}{}", &namespace[..6], &of_name[of_name.len() - 64..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intkey_is_parsed_and_has_its_address() {
        let intkey: Intkey = "inc counter 7".parse().unwrap();
        let transaction = intkey.transaction();
        assert!(transaction.outputs[0].starts_with("1cf126"), "{:?}", transaction.outputs);
        assert_eq!(transaction.outputs[0].len(), 70);
        for text in ["", "inc a", "add a 1", "set a -1", "set a 5000000000", "set a 1 2"] {
            assert!(text.parse::<Intkey>().is_err(), "{text}");
        }
    }
}
