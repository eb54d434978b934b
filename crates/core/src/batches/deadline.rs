use std::{fmt, str::FromStr, time::Duration};

use thiserror::Error;

use crate::{Excerpt, Timestamp};

/// After this time or height, the ledger can never apply the batch.
///
/// Its text is the stored form: `height 7` or `time 1700000000000000`, in microseconds. `{:#}` formats it for people.
///
/// ```
/// use grid_batch_core::batches::Deadline;
///
/// let deadline = Deadline::Height(7);
/// assert_eq!(deadline.to_string().parse(), Ok(deadline));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deadline {
    /// A time of the ledger.
    Time(Timestamp),
    /// The number of a block or of a version of the ledger.
    Height(u64),
}

/// A text is not a [`Deadline`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the deadline {value} is neither \"time\" nor \"height\" with a number")]
pub struct DeadlineError {
    /// The beginning of the text.
    pub value: Excerpt,
}

/// The position of a ledger, as reported by one of its nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LedgerPosition {
    /// The time of its latest block. `None`: its batches have no deadlines that are times.
    pub time: Option<Timestamp>,
    /// The number of its latest block. `None`: its batches have no deadlines that are heights.
    pub height: Option<u64>,
    /// A batch is not sent when less than this is left until a time.
    pub time_margin: Duration,
    /// A batch is not sent when less than this is left until a height.
    pub height_margin: u64,
}

/// What is left until a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLeft {
    /// The batch may be sent.
    Enough,
    /// The ledger may not apply the batch in time.
    TooLittle,
    /// The deadline has passed.
    Nothing,
}

impl LedgerPosition {
    /// What is left until the deadline. This rule decides whether a batch is sent. If the ledger does not report its
    /// position, the batch may be sent.
    pub fn time_left(&self, deadline: Deadline) -> TimeLeft {
        let (position, margin, end) = match (deadline, self.time, self.height) {
            (Deadline::Time(end), Some(time), _) => {
                let margin = i64::try_from(self.time_margin.as_micros()).unwrap_or(i64::MAX);
                (i128::from(time.as_micros()), i128::from(margin), i128::from(end.as_micros()))
            }
            (Deadline::Height(end), _, Some(height)) => {
                (i128::from(height), i128::from(self.height_margin), i128::from(end))
            }
            _ => return TimeLeft::Enough,
        };
        match end - position {
            left if left < 0 => TimeLeft::Nothing,
            left if left < margin => TimeLeft::TooLittle,
            _ => TimeLeft::Enough,
        }
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) if f.alternate() => f.write_str(&time.rfc3339()),
            Self::Time(time) => write!(f, "time {}", time.as_micros()),
            Self::Height(height) => write!(f, "height {height}"),
        }
    }
}

impl FromStr for Deadline {
    type Err = DeadlineError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = match text.split_once(' ') {
            Some(("time", micros)) => {
                micros.parse().ok().map(|it| Self::Time(Timestamp::from_micros(it)))
            }
            Some(("height", height)) => height.parse().ok().map(Self::Height),
            _ => None,
        };
        parsed.ok_or_else(|| DeadlineError { value: Excerpt::of(text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSITION: LedgerPosition = LedgerPosition {
        time: Some(Timestamp::from_micros(10_000_000)),
        height: Some(10),
        time_margin: Duration::from_secs(2),
        height_margin: 2,
    };

    #[test]
    fn batch_is_sent_while_the_margin_is_left() {
        for (end, left) in [
            (9, TimeLeft::Nothing),
            (10, TimeLeft::TooLittle),
            (11, TimeLeft::TooLittle),
            (12, TimeLeft::Enough),
        ] {
            let time = Deadline::Time(Timestamp::from_micros(end * 1_000_000));
            assert_eq!(POSITION.time_left(time), left, "{end}");
            assert_eq!(POSITION.time_left(Deadline::Height(end as u64)), left, "{end}");
        }
        let unknown = LedgerPosition::default();
        assert_eq!(unknown.time_left(Deadline::Height(0)), TimeLeft::Enough);
    }

    #[test]
    fn people_read_the_time_of_day() {
        let time = Deadline::Time(Timestamp::from_micros(1_700_000_000_000_000));
        assert_eq!(
            format!("{time:#}, {:#}", Deadline::Height(7)),
            "2023-11-14T22:13:20Z, height 7"
        );
    }

    #[test]
    fn text_is_read_again() {
        for deadline in [Deadline::Time(Timestamp::from_micros(-1)), Deadline::Height(u64::MAX)] {
            assert_eq!(deadline.to_string().parse(), Ok(deadline));
        }
        for text in ["", "height", "height -1", "time x", "depth 1"] {
            assert!(text.parse::<Deadline>().is_err(), "{text}");
        }
    }
}
