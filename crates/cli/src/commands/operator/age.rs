use std::time::Duration;

use grid_batch_core::Timestamp;

/// How long ago a time was, such as `3 h ago`.
pub(in crate::commands) fn ago(time: Timestamp, now: Timestamp) -> String {
    format!("{} ago", rough(now.since(time)))
}

/// A duration in one unit, rounded down.
pub(in crate::commands) fn rough(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn ages_have_one_unit() {
        for (seconds, text) in [
            (0, "0 s ago"),
            (119, "119 s ago"),
            (120, "2 min ago"),
            (7_199, "119 min ago"),
            (7_200, "2 h ago"),
            (172_799, "47 h ago"),
            (172_800, "2 days ago"),
        ] {
            assert_eq!(ago(at(1), at(1 + seconds)), text);
        }
        assert_eq!(ago(at(9), at(1)), "0 s ago");
    }
}
