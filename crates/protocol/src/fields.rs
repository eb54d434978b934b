use std::ops::Range;

use prost::decode_length_delimiter;

use crate::DecodeError;

/// The contents of all fields with this number, in order, as slices of the message.
///
/// This neither decodes the contents nor allocates memory. So the exact bytes of a batch can be taken out of a list,
/// and transactions can be counted before they are decoded.
pub(crate) fn fields(message: &[u8], number: usize) -> Fields<'_> {
    Fields { rest: message, number }
}

const VARINT: usize = 0;
const FIXED64: usize = 1;
const LENGTH_DELIMITED: usize = 2;
const FIXED32: usize = 5;

pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<&'a [u8], DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            match self.next_field() {
                Ok(None) => {}
                Ok(Some(content)) => return Some(Ok(content)),
                Err(error) => {
                    self.rest = &[];
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

impl<'a> Fields<'a> {
    const NUMBERS: Range<usize> = 1..1 << 29;

    /// Reads the next field. Returns its content if it has the requested number.
    fn next_field(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        let key = self.varint()?;
        let number = key >> 3;
        let is_requested = number == self.number;
        let unexpected = Err(DecodeError::Field { number });
        match key & 7 {
            _ if !Self::NUMBERS.contains(&number) => unexpected,
            LENGTH_DELIMITED => {
                let length = self.varint()?;
                let content = self.take(length)?;
                Ok(is_requested.then_some(content))
            }
            _ if is_requested => unexpected,
            VARINT => self.varint().map(|_| None),
            FIXED64 => self.take(8).map(|_| None),
            FIXED32 => self.take(4).map(|_| None),
            _ => unexpected,
        }
    }

    fn varint(&mut self) -> Result<usize, DecodeError> {
        Ok(decode_length_delimiter(&mut self.rest)?)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A list whose batches prost does not decode.
    #[derive(Clone, PartialEq, prost::Message)]
    struct Contents {
        #[prost(bytes = "vec", repeated, tag = "1")]
        contents: Vec<Vec<u8>>,
    }

    fn collect(message: &[u8]) -> Result<Vec<Vec<u8>>, DecodeError> {
        fields(message, 1).map(|content| Ok(content?.to_vec())).collect()
    }

    /// Bytes that often are valid fields.
    fn message() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            4 => prop::sample::select(vec![0x0a, 0x08, 0x0d, 0x09, 0x12, 0x80, 0x00, 0x01, 0x02]),
            1 => any::<u8>(),
        ];
        prop::collection::vec(byte, 0..24)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn prost_finds_the_same_fields(message in message()) {
            use prost::Message as _;
            if let Ok(ours) = collect(&message) {
                let theirs = Contents::decode(&message[..]).map(|list| list.contents);
                prop_assert_eq!(theirs, Ok(ours));
            }
        }

        #[test]
        fn fields_encoded_by_prost_are_found(contents in prop::collection::vec(any::<Vec<u8>>(), 0..5)) {
            use prost::Message as _;
            let list = Contents { contents };
            prop_assert_eq!(collect(&list.encode_to_vec()), Ok(list.contents));
        }
    }

    #[test]
    fn fields_with_other_numbers_are_skipped() {
        let varint = [0x10, 0xff, 0x01];
        let eight = [0x11, 0, 0, 0, 0, 0, 0, 0, 0];
        let text = [0x12, 1, b'x'];
        let four = [0x15, 0, 0, 0, 0];
        let is_requested = [0x0a, 2, b'o', b'k'];
        let message = [&varint[..], &eight, &text, &is_requested, &four].concat();
        assert_eq!(collect(&message), Ok(vec![b"ok".to_vec()]));
    }

    #[test]
    fn truncated_field_is_an_error() {
        for message in [&[0x0a][..], &[0x0a, 5, 1], &[0x11, 0], &[0x15], &[0x80]] {
            assert!(collect(message).is_err(), "{message:?}");
        }
    }

    #[test]
    fn groups_and_unexpected_wire_types_are_errors() {
        for message in [&[0x0b, 0x0c][..], &[0x13, 0x14], &[0x08, 0], &[0x0f], &[0x02, 0]] {
            let error = collect(message).unwrap_err();
            assert!(matches!(error, DecodeError::Field { .. }), "{message:?}: {error}");
        }
    }
}
