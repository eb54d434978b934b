use std::ops::Range;

use prost::decode_length_delimiter;

use crate::DecodeError;

/// The contents of every field of this number, in order, as the bytes that came.
///
/// What is inside is left alone and nothing is allocated, so that a batch can be cut out of a list
/// exactly, and counted before it is decoded.
pub(crate) fn fields(message: &[u8], number: usize) -> Fields<'_> {
    Fields { rest: message, number }
}

const VARINT: usize = 0;
const EIGHT_BYTES: usize = 1;
const WITH_LENGTH: usize = 2;
const FOUR_BYTES: usize = 5;

pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<&'a [u8], DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            match self.step() {
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

    /// Takes one field off, and gives its content where it is one of those that are looked for.
    fn step(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        let key = self.varint()?;
        let number = key >> 3;
        let wanted = number == self.number;
        let misplaced = Err(DecodeError::Field { number });
        match key & 7 {
            _ if !Self::NUMBERS.contains(&number) => misplaced,
            WITH_LENGTH => {
                let length = self.varint()?;
                let content = self.take(length)?;
                Ok(wanted.then_some(content))
            }
            _ if wanted => misplaced,
            VARINT => self.varint().map(|_| None),
            EIGHT_BYTES => self.take(8).map(|_| None),
            FOUR_BYTES => self.take(4).map(|_| None),
            _ => misplaced,
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

    /// As much of a list as prost can be asked to leave alone.
    #[derive(Clone, PartialEq, prost::Message)]
    struct Contents {
        #[prost(bytes = "vec", repeated, tag = "1")]
        contents: Vec<Vec<u8>>,
    }

    fn collect(message: &[u8]) -> Result<Vec<Vec<u8>>, DecodeError> {
        fields(message, 1).map(|content| Ok(content?.to_vec())).collect()
    }

    /// Bytes that often look like fields.
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
        fn prost_finds_the_same(message in message()) {
            use prost::Message as _;
            if let Ok(ours) = collect(&message) {
                let theirs = Contents::decode(&message[..]).map(|list| list.contents);
                prop_assert_eq!(theirs, Ok(ours));
            }
        }

        #[test]
        fn what_prost_writes_is_found(contents in prop::collection::vec(any::<Vec<u8>>(), 0..5)) {
            use prost::Message as _;
            let list = Contents { contents };
            prop_assert_eq!(collect(&list.encode_to_vec()), Ok(list.contents));
        }
    }

    #[test]
    fn fields_of_other_numbers_are_passed_over() {
        let varint = [0x10, 0xff, 0x01];
        let eight = [0x11, 0, 0, 0, 0, 0, 0, 0, 0];
        let text = [0x12, 1, b'x'];
        let four = [0x15, 0, 0, 0, 0];
        let wanted = [0x0a, 2, b'o', b'k'];
        let message = [&varint[..], &eight, &text, &wanted, &four].concat();
        assert_eq!(collect(&message), Ok(vec![b"ok".to_vec()]));
    }

    #[test]
    fn a_field_that_ends_too_early_is_an_error() {
        for message in [&[0x0a][..], &[0x0a, 5, 1], &[0x11, 0], &[0x15], &[0x80]] {
            assert!(collect(message).is_err(), "{message:?}");
        }
    }

    #[test]
    fn groups_and_fields_of_the_wrong_kind_are_errors() {
        for message in [&[0x0b, 0x0c][..], &[0x13, 0x14], &[0x08, 0], &[0x0f], &[0x02, 0]] {
            let error = collect(message).unwrap_err();
            assert!(matches!(error, DecodeError::Field { .. }), "{message:?}: {error}");
        }
    }
}
