use grid_batch_core::Hex;
use serde::Deserialize;
use sha2::{Digest, Sha512};

/// The largest number that the family stores.
const LARGEST: u64 = u32::MAX as u64;

/// A transaction of `intkey`, the family of Sawtooth's own tutorials.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub(crate) struct Intkey {
    verb: String,
    name: String,
    value: u64,
}

impl Intkey {
    pub(crate) const FAMILY: &str = "intkey";

    /// Reads a payload: a map of `Verb`, `Name` and `Value` as CBOR. `None` if it is something else.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        cbor4ii::serde::from_slice(payload).ok()
    }

    /// Where the number of this name is stored.
    pub(crate) fn address(&self) -> String {
        let hash = |text: &str| Hex(&Sha512::digest(text)).to_string();
        let (namespace, of_name) = (hash(Self::FAMILY), hash(&self.name));
        format!("{}{}", &namespace[..6], &of_name[of_name.len() - 64..])
    }

    /// The number after the transaction, or why it is invalid, as the genuine processor says it.
    pub(crate) fn apply(&self, present: Option<u64>) -> Result<u64, String> {
        let Self { verb, name, value } = self;
        let number = match (verb.as_str(), present) {
            ("set", Some(_)) => {
                return Err(format!("Verb is \"set\", but already exists: Name: {name}"));
            }
            ("set", None) => Some(*value),
            ("inc" | "dec", None) => {
                return Err(format!("Verb is \"{verb}\" but name \"{name}\" not in state"));
            }
            ("inc", Some(present)) => present.checked_add(*value),
            ("dec", Some(present)) => present.checked_sub(*value),
            _ => return Err("Verb must be \"set\", \"inc\", or \"dec\"".to_owned()),
        };
        number.filter(|number| *number <= LARGEST).ok_or_else(|| {
            format!("Verb is \"{verb}\", but result would be less than 0 or greater than {LARGEST}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_is_read_and_its_result_depends_on_the_state() {
        let payload = b"\xa3\x64Verb\x63dec\x64Name\x66apples\x65Value\x19\x01\x00";
        let dec = Intkey::read(payload).unwrap();
        assert_eq!((dec.verb.as_str(), dec.name.as_str(), dec.value), ("dec", "apples", 256));
        assert!(dec.address().starts_with("1cf126") && dec.address().len() == 70);
        assert_eq!(dec.apply(Some(300)), Ok(44));
        assert!(dec.apply(None).unwrap_err().contains("\"apples\" not in state"));
        assert!(dec.apply(Some(255)).unwrap_err().contains("less than 0"));
        let with = |verb: &str| Intkey { verb: verb.to_owned(), ..dec.clone() };
        assert_eq!((with("set").apply(None), with("inc").apply(Some(1))), (Ok(256), Ok(257)));
        assert!(with("set").apply(Some(1)).is_err() && with("inc").apply(Some(LARGEST)).is_err());
        for end in 0..payload.len() {
            assert_eq!(Intkey::read(&payload[..end]), None);
        }
        assert_eq!(Intkey::read(b"set a to 5"), None);
    }
}
