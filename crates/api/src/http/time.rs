use grid_batch_core::Timestamp;

/// A time in the format of RFC 3339, in UTC. Times that the format cannot express become the nearest
/// that it can.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    time.rfc3339_micros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_formatted_to_the_microsecond() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1_600_000_000_000_007, "2020-09-13T12:26:40.000007Z"),
            (i64::MIN, "1970-01-01T00:00:00.000000Z"),
            (i64::MAX, "9999-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(rfc3339(Timestamp::from_micros(micros)), text);
        }
    }

    proptest! {
        #[test]
        fn any_time_can_be_formatted(micros in any::<i64>()) {
            prop_assert_eq!(rfc3339(Timestamp::from_micros(micros)).len(), 27);
        }
    }
}
