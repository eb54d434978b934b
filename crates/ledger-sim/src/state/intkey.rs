use grid_batch_core::Hex;
use sha2::{Digest, Sha512};

/// The largest number that the family stores.
const LARGEST: u64 = u32::MAX as u64;

/// A transaction of `intkey`, the family of Sawtooth's own tutorials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Intkey {
    verb: String,
    name: String,
    value: u64,
}

impl Intkey {
    pub(crate) const FAMILY: &str = "intkey";

    /// Reads a payload: a map of `Verb`, `Name` and `Value` as CBOR. `None` if it is something else.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let mut cbor = Cbor(payload);
        let fields = cbor.head(Cbor::MAP)?;
        let (mut verb, mut name, mut value) = (None, None, None);
        for _ in 0..fields {
            match cbor.text()?.as_str() {
                "Verb" => verb = Some(cbor.text()?),
                "Name" => name = Some(cbor.text()?),
                "Value" => value = Some(cbor.head(Cbor::UNSIGNED)?),
                _ => return None,
            }
        }
        Some(Self { verb: verb?, name: name?, value: value? })
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

/// The bytes of a CBOR item (RFC 8949) that are left.
struct Cbor<'a>(&'a [u8]);

impl Cbor<'_> {
    const UNSIGNED: u8 = 0;
    const TEXT: u8 = 3;
    const MAP: u8 = 5;

    /// The number in the head of an item of this kind.
    fn head(&mut self, kind: u8) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        if first >> 5 != kind {
            return None;
        }
        let length = match first & 0x1f {
            small @ 0..24 => {
                self.0 = rest;
                return Some(small.into());
            }
            size @ 24..=27 => 1 << (size - 24),
            _ => return None,
        };
        let (number, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.head(Self::TEXT)?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
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
