//! The batches of a group of events, as one value: the difference of each to the one before, in seven bits
//! a byte. Batches of a group are mostly neighbours.

use crate::sql::StoreError;

pub(super) fn encode(seqs: impl Iterator<Item = i64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut last = 0_i64;
    for seq in seqs {
        let difference = seq.wrapping_sub(last);
        // Small differences of either sign become small numbers.
        let mut left = ((difference << 1) ^ (difference >> 63)).cast_unsigned();
        while left > 0x7f {
            bytes.push((left & 0x7f) as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
        last = seq;
    }
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Result<Vec<i64>, StoreError> {
    let invalid = || StoreError::corrupt("a group of events names its batches in another form");
    let mut seqs = Vec::new();
    let (mut last, mut value, mut shift) = (0_i64, 0_u64, 0_u32);
    for byte in bytes {
        if shift > 63 {
            return Err(invalid());
        }
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            let difference = (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
            last = last.wrapping_add(difference);
            seqs.push(last);
            (value, shift) = (0, 0);
        }
    }
    match shift {
        0 => Ok(seqs),
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_take_a_byte_each() {
        assert_eq!(encode((1_000..1_100).step_by(2)).len(), 51);
    }

    #[test]
    fn value_that_is_cut_off_is_refused() {
        assert!(decode(&[0x80]).is_err());
        assert!(decode(&[0xff; 11]).is_err());
    }

    proptest! {
        #[test]
        fn decoding_is_the_inverse(seqs: Vec<i64>) {
            prop_assert_eq!(decode(&encode(seqs.iter().copied())).unwrap(), seqs);
        }
    }
}
