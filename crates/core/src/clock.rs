use std::{
    fmt,
    num::NonZeroU64,
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

    /// The time in UTC in the format of RFC 3339, to the second. A time before 1970 or after the year 9999 is shown as
    /// the first or the last second of that range.
    ///
    /// ```
    /// use grid_batch_core::Timestamp;
    ///
    /// assert_eq!(Timestamp::from_micros(1_700_000_000_000_000).rfc3339(), "2023-11-14T22:13:20Z");
    /// ```
    pub fn rfc3339(self) -> String {
        let (date_and_time, _) = self.in_utc();
        format!("{date_and_time}Z")
    }

    /// The same as `Display`, but to the microsecond.
    ///
    /// ```
    /// use grid_batch_core::Timestamp;
    ///
    /// let time = Timestamp::from_micros(1_700_000_000_000_007);
    /// assert_eq!(time.rfc3339_micros(), "2023-11-14T22:13:20.000007Z");
    /// ```
    pub fn rfc3339_micros(self) -> String {
        let (date_and_time, micros) = self.in_utc();
        format!("{date_and_time}.{micros:06}Z")
    }

    /// Date and time to the second, and the microseconds of the second.
    fn in_utc(self) -> (String, i64) {
        const SECOND: i64 = 1_000_000;
        const DAY: i64 = 86_400;
        const LATEST: i64 = 253_402_300_799_999_999;
        let micros = self.0.clamp(0, LATEST);
        let (seconds, micros) = (micros / SECOND, micros % SECOND);
        let (year, month, day) = date(seconds / DAY);
        let (hour, minute, second) = (seconds % DAY / 3_600, seconds / 60 % 60, seconds % 60);
        (format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"), micros)
    }

    /// The time elapsed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Year, month and day of this day after 1970-01-01. Years begin in March here, so that a leap day is the last day of
/// a year.
fn date(day: i64) -> (i64, i64, i64) {
    const DAYS_FROM_MARCH_OF_YEAR_0: i64 = 719_468;
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let day = day + DAYS_FROM_MARCH_OF_YEAR_0;
    let (era, day) = (day / DAYS_OF_400_YEARS, day % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
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
/// It measures durations within a process, because the time of day may be set forward or back at any moment. It has no
/// meaning outside the process, so it is never stored.
///
/// It is in nanoseconds, from one on, so that an optional time has eight bytes too: there are many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonotonicTime(NonZeroU64);

impl Default for MonotonicTime {
    fn default() -> Self {
        Self(NonZeroU64::MIN)
    }
}

impl MonotonicTime {
    /// This time plus `duration`, saturating at the last time that can be represented.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }

    /// The time elapsed since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }
}

/// A moment of this process, read from both clocks.
///
/// It is used to find out whether a time limit has passed. Each clock may miss time: a monotonic clock stops while the
/// machine is suspended, and the time of day may be set back.
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

    /// The longest time that may have elapsed since this moment: the longer of the times that the two clocks show. If
    /// the time of day was set forward, this is more than the time that has elapsed.
    pub fn longest_elapsed(self, clock: &dyn Clock) -> Duration {
        let now = Self::now(clock);
        let by_time_of_day = now.time_of_day.since(self.time_of_day);
        by_time_of_day.max(now.monotonic.since(self.monotonic))
    }
}

/// A source of the current time, so that tests can set it.
#[cfg_attr(feature = "mocks", mockall::automock)]
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
        MonotonicTime::default().plus(ORIGIN.elapsed())
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_formatted_to_the_microsecond() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1_600_000_000_000_007, "2020-09-13T12:26:40.000007Z"),
            (i64::MIN, "1970-01-01T00:00:00.000000Z"),
            (i64::MAX, "9999-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(Timestamp::from_micros(micros).rfc3339_micros(), text);
        }
    }

    #[test]
    fn no_sum_or_difference_overflows() {
        let last = Timestamp::from_micros(i64::MAX);
        let first = Timestamp::from_micros(i64::MIN);
        assert_eq!(last.plus(Duration::MAX), last);
        assert_eq!(first.since(last), Duration::ZERO);
        assert_eq!(last.since(first), Duration::from_micros(i64::MAX as u64));
    }

    #[test]
    fn times_are_dates_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(Timestamp::from_micros(seconds * 1_000_000).rfc3339(), text);
        }
        assert_eq!(Timestamp::from_micros(i64::MIN).rfc3339(), "1970-01-01T00:00:00Z");
        assert_eq!(Timestamp::from_micros(i64::MAX).rfc3339(), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn longest_elapsed_is_the_longer_of_both_clocks() {
        const SECOND: Duration = Duration::from_secs(1);
        let clock = ManualClock::at(Timestamp::default().plus(60 * SECOND));
        let moment = Moment::now(&clock);
        clock.set(Timestamp::default());
        assert_eq!(moment.longest_elapsed(&clock), Duration::ZERO);
        clock.advance(SECOND);
        assert_eq!(moment.longest_elapsed(&clock), SECOND);
        // As if the machine had been suspended.
        clock.set(Timestamp::default().plus(100 * SECOND));
        assert_eq!(moment.longest_elapsed(&clock), 40 * SECOND);
    }

    proptest! {
        #[test]
        fn any_time_can_be_formatted(micros in any::<i64>()) {
            prop_assert_eq!(Timestamp::from_micros(micros).rfc3339_micros().len(), 27);
        }
    }

    #[test]
    fn times_before_1970_are_negative() {
        let before = UNIX_EPOCH - Duration::from_micros(7);
        assert_eq!(Timestamp::from(before).as_micros(), -7);
    }
}
