use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A point in time, in whole microseconds since 1970 (UTC): the precision of both databases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The time this many microseconds after 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This time plus `duration`, saturating at the last time that can be represented.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The time elapsed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self::default().plus(after),
            Err(before) => Self(-i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX)),
        }
    }
}

/// A source of the current time, so that tests can set it.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }
}

/// A clock for tests: it moves only when it is set or advanced.
///
/// ```
/// use std::time::Duration;
/// use grid_batch_core::{Clock, ManualClock, Timestamp};
///
/// let clock = ManualClock::at(Timestamp::from_micros(1_000));
/// assert_eq!(clock.now(), clock.now());
/// clock.advance(Duration::from_micros(5));
/// assert_eq!(clock.now().as_micros(), 1_005);
/// ```
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(Mutex::new(now))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let now = self.now().plus(by);
        self.set(now);
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, now: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sum_or_difference_overflows() {
        let last = Timestamp::from_micros(i64::MAX);
        let first = Timestamp::from_micros(i64::MIN);
        assert_eq!(last.plus(Duration::MAX), last);
        assert_eq!(first.since(last), Duration::ZERO);
        assert_eq!(last.since(first), Duration::from_micros(i64::MAX as u64));
    }

    #[test]
    fn times_before_1970_are_negative() {
        let before = UNIX_EPOCH - Duration::from_micros(7);
        assert_eq!(Timestamp::from(before).as_micros(), -7);
    }
}
