use grid_batch_core::Timestamp;
use grid_batch_core::batches::BatchState;
use grid_batch_core::events::{BatchEvent, EventId, EventKind, EventWithdrawal};

use crate::sql::{
    StoreError, result_row,
    rows::{batch_id, read_trace, service_id},
};

/// The columns of a [`GroupRow`], from `event_groups g`.
pub(super) const GROUP_COLUMNS: &str = "g.seq, g.xid, g.instance, g.batch_seqs";

result_row! {
    /// The events of one commit.
    #[derive(Debug, Clone)]
    pub(super) struct GroupRow {
        pub(super) seq: i64,
        pub(super) xid: Option<i64>,
        pub(super) instance: Option<String>,
        pub(super) batch_seqs: Vec<u8>,
    }
}

/// The columns of an [`EventRow`], from `batch_events e` and `batches b`.
pub(super) const EVENT_COLUMNS: &str =
    "e.group_seq, e.at, e.position, e.attempt, e.kind, e.state, e.detail,
    b.service_id, b.batch_id, b.trace";

result_row! {
    #[derive(Debug)]
    pub(super) struct EventRow {
        pub(super) group_seq: i64,
        at: i64,
        pub(super) position: i32,
        attempt: i32,
        kind: i32,
        state: i32,
        detail: Option<String>,
        pub(super) service_id: String,
        pub(super) batch_id: Vec<u8>,
        trace: Option<String>,
    }
}

impl EventRow {
    pub(super) fn into_event(
        self,
        instance: Option<String>,
        withdrawal: Option<EventWithdrawal>,
    ) -> Result<BatchEvent, StoreError> {
        Ok(BatchEvent {
            id: EventId { group: self.group_seq, position: self.position },
            service_id: service_id(&self.service_id)?,
            batch_id: batch_id(&self.batch_id)?,
            kind: of_code(&EventKind::ALL, self.kind)?,
            state: of_code(&BatchState::ALL, self.state)?,
            attempt: u32::try_from(self.attempt).map_err(StoreError::corrupt)?,
            detail: self.detail,
            at: Timestamp::from_micros(self.at),
            instance,
            withdrawal,
            trace: read_trace(self.trace)?,
        })
    }
}

fn of_code<T: Copy>(all: &[T], code: i32) -> Result<T, StoreError> {
    let value = usize::try_from(code).ok().and_then(|index| all.get(index));
    value.copied().ok_or_else(|| StoreError::corrupt(format!("an event with the code {code}")))
}

/// The index of a value in the list of all.
pub(super) fn code<T: PartialEq>(all: &[T], value: T) -> i32 {
    let index = all.iter().position(|other| *other == value).unwrap_or_default();
    i32::try_from(index).unwrap_or_default()
}

/// The batches of a group of events as one value: the difference of each to the previous one, with seven bits per byte.
/// The batches of a group are mostly neighbours.
pub(super) fn encode_seqs(seqs: impl Iterator<Item = i64>) -> Vec<u8> {
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

pub(super) fn decode_seqs(bytes: &[u8]) -> Result<Vec<i64>, StoreError> {
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
        assert_eq!(encode_seqs((1_000..1_100).step_by(2)).len(), 51);
    }

    #[test]
    fn value_that_is_cut_off_is_refused() {
        assert!(decode_seqs(&[0x80]).is_err());
        assert!(decode_seqs(&[0xff; 11]).is_err());
    }

    proptest! {
        #[test]
        fn decoding_is_the_inverse(seqs: Vec<i64>) {
            prop_assert_eq!(decode_seqs(&encode_seqs(seqs.iter().copied())).unwrap(), seqs);
        }
    }
}
