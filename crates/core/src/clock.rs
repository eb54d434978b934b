use std::{
    fmt,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
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

    /// This time minus `duration`, saturating at the first time that can be represented.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
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

/// A reading of a monotonic clock: the time since an arbitrary moment of this process.
///
/// What elapses within a process is measured with it, because the time of day may be set forward or
/// back at any moment. It has no meaning outside the process, so it is never stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonotonicTime(Duration);

impl MonotonicTime {
    /// This time plus `duration`, saturating at the last time that can be represented.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// The time elapsed since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// A moment of this process by both clocks.
///
/// It tells whether it is too late for something. Each clock may miss time: a monotonic clock stops
/// while the machine is suspended, and the time of day may be set back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    time_of_day: Timestamp,
    monotonic: MonotonicTime,
}

impl Moment {
    /// The present moment.
    pub fn now(clock: &dyn Clock) -> Self {
        Self { time_of_day: clock.now(), monotonic: clock.monotonic() }
    }

    /// The longest time that may have elapsed since this moment: the longer one of the two clocks.
    /// If the time of day was set forward, this is longer than what has elapsed.
    pub fn longest_elapsed(self, clock: &dyn Clock) -> Duration {
        let now = Self::now(clock);
        let by_time_of_day = now.time_of_day.since(self.time_of_day);
        by_time_of_day.max(now.monotonic.since(self.monotonic))
    }
}

/// A source of the current time, so that tests can set it.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time of day. It may jump forward and back: use it to store and to show, not to measure.
    fn now(&self) -> Timestamp;

    /// The time by which durations are measured.
    fn monotonic(&self) -> MonotonicTime;
}

/// The clocks of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn monotonic(&self) -> MonotonicTime {
        static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
        MonotonicTime(ORIGIN.elapsed())
    }
}

/// A clock for tests: it moves only when it is advanced or set.
///
/// ```
/// use std::time::Duration;
/// use grid_batch_core::{Clock, ManualClock, Timestamp};
///
/// let clock = ManualClock::at(Timestamp::from_micros(1_000));
/// let start = clock.monotonic();
/// clock.advance(Duration::from_micros(5));
/// assert_eq!(clock.now().as_micros(), 1_005);
/// // The time of day jumps, and no time elapses.
/// clock.set(Timestamp::from_micros(0));
/// assert_eq!(clock.monotonic().since(start), Duration::from_micros(5));
/// ```
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<(Timestamp, MonotonicTime)>);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(Mutex::new((now, MonotonicTime::default())))
    }

    /// Lets time elapse: both clocks move forward.
    pub fn advance(&self, by: Duration) {
        let mut clocks = self.lock();
        *clocks = (clocks.0.plus(by), clocks.1.plus(by));
    }

    /// Sets the time of day, forward or back, as if an operator had changed it: no time elapses.
    pub fn set(&self, now: Timestamp) {
        self.lock().0 = now;
    }

    fn lock(&self) -> MutexGuard<'_, (Timestamp, MonotonicTime)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().0
    }

    fn monotonic(&self) -> MonotonicTime {
        self.lock().1
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
    fn longest_elapsed_counts_what_either_clock_shows() {
        const SECOND: Duration = Duration::from_secs(1);
        let clock = ManualClock::at(Timestamp::default().plus(60 * SECOND));
        let moment = Moment::now(&clock);
        clock.set(Timestamp::default());
        assert_eq!(moment.longest_elapsed(&clock), Duration::ZERO);
        clock.advance(SECOND);
        assert_eq!(moment.longest_elapsed(&clock), SECOND);
        // As after the machine was suspended.
        clock.set(Timestamp::default().plus(100 * SECOND));
        assert_eq!(moment.longest_elapsed(&clock), 40 * SECOND);
    }

    #[test]
    fn times_before_1970_are_negative() {
        let before = UNIX_EPOCH - Duration::from_micros(7);
        assert_eq!(Timestamp::from(before).as_micros(), -7);
    }
}
