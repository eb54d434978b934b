use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{Clock, MonotonicTime, Timestamp};
use grid_batch_support::lock;
use log::{info, warn};

/// A [`Clock`] whose time of day is that of the database, which this process follows between measurements. Clones are
/// the same clock.
///
/// It is measured when a store is opened and with each renewal of a lease. In between, it advances with the monotonic
/// clock of the process. The times that several machines store therefore agree up to the duration of a measurement, and
/// are not affected by a jump of a machine's own time of day.
///
/// SQLite has no clock of its own, so the time of day of this machine is measured in the same way.
#[derive(Clone)]
pub struct DatabaseClock {
    machine: Arc<dyn Clock>,
    /// `None`: it always shows what `machine` shows.
    measured: Option<Arc<Mutex<Measured>>>,
}

/// How far the clock of this machine is ahead of the database's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockSkew {
    /// In microseconds; negative if it is behind.
    pub ahead_micros: i64,
}

/// The last measurement.
#[derive(Debug, Default)]
struct Measured {
    /// The database's time when the monotonic clock was at its origin. `None`: not measured yet.
    origin: Option<i64>,
    skew: ClockSkew,
    /// The skew about which a warning was last logged.
    warned: Option<ClockSkew>,
}

/// A reading of the database's clock, and of the monotonic clock before and after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) before: MonotonicTime,
    pub(super) database: Timestamp,
    pub(super) after: MonotonicTime,
}

impl ClockSkew {
    /// Clocks that are synchronized by a time service differ by less than this.
    const TOLERATED: Duration = Duration::from_secs(3);

    fn size(self) -> Duration {
        Duration::from_micros(self.ahead_micros.unsigned_abs())
    }

    /// Whether clocks that are synchronized by a time service may differ by this much.
    pub fn is_tolerated(self) -> bool {
        self.size() <= Self::TOLERATED
    }

    /// Whether it differs from the other skew by more than clocks usually drift.
    fn differs_from(self, other: Self) -> bool {
        let ahead_micros = self.ahead_micros.saturating_sub(other.ahead_micros);
        !Self { ahead_micros }.is_tolerated()
    }

    /// In seconds, in steps of a millisecond; negative if this machine is behind.
    pub fn ahead_seconds(self) -> f64 {
        (self.ahead_micros / 1_000) as f64 / 1e3
    }
}

impl fmt::Display for ClockSkew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.ahead_micros < 0 { "behind" } else { "ahead of" };
        write!(f, "{:.1} s {direction} the database's", self.size().as_secs_f64())
    }
}

impl DatabaseClock {
    /// The clock of a store's database on a machine with these clocks. Until it is measured, it shows the machine's
    /// time of day.
    pub fn new(machine: Arc<dyn Clock>) -> Self {
        Self { machine, measured: Some(Arc::default()) }
    }

    /// A clock for tests that set the time. It is never measured, and shows the same as `clock`.
    pub fn simulated(clock: Arc<dyn Clock>) -> Self {
        Self { machine: clock, measured: None }
    }

    /// How far this machine is ahead of the database, according to the last measurement.
    pub fn skew(&self) -> ClockSkew {
        self.measured.as_ref().map_or(ClockSkew::default(), |measured| lock(measured).skew)
    }

    /// The clocks of this machine.
    pub(super) fn machine(&self) -> &dyn Clock {
        &*self.machine
    }

    pub(super) fn is_simulated(&self) -> bool {
        self.measured.is_none()
    }

    /// Follows the database's clock from this reading on.
    pub(super) fn follow(&self, reading: Reading) {
        let Some(measured) = &self.measured else { return };
        let machine_time = self.machine.now();
        let mut measured = lock(measured);
        measured.follow(reading);
        let database_time = measured.time_at(reading.after).unwrap_or(machine_time);
        let ahead_micros = machine_time.as_micros().saturating_sub(database_time.as_micros());
        measured.skew_is(ClockSkew { ahead_micros });
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        let monotonic = self.machine.monotonic();
        let measured =
            self.measured.as_ref().and_then(|measured| lock(measured).time_at(monotonic));
        measured.unwrap_or_else(|| self.machine.now())
    }

    fn monotonic(&self) -> MonotonicTime {
        self.machine.monotonic()
    }
}

impl Measured {
    /// The minimum change of the database's clock that is reported as a jump, because it is larger than the drift.
    const JUMP: i64 = 1_000_000;

    fn time_at(&self, monotonic: MonotonicTime) -> Option<Timestamp> {
        let elapsed = monotonic.since(MonotonicTime::default());
        self.origin.map(|origin| Timestamp::from_micros(origin).plus(elapsed))
    }

    /// The database's clock was read at some moment between `before` and `after`. If the present origin agrees with
    /// this, it is kept, so that times do not go back and forth by the duration of a measurement.
    fn follow(&mut self, reading: Reading) {
        let earliest = origin_of(reading.database, reading.after);
        let latest = origin_of(reading.database, reading.before);
        let middle = earliest.midpoint(latest);
        let origin =
            self.origin.map_or(middle, |origin| origin.clamp(earliest, latest.max(earliest)));
        if let Some(present) = self.origin
            && origin.abs_diff(present) > Self::JUMP.unsigned_abs()
        {
            let seconds = (origin - present) as f64 / 1e6;
            warn!(forward_seconds = seconds;
                "the database's clock jumped, or this machine was suspended: leases may have expired \
                 early or last longer; waits are not affected");
        }
        self.origin = Some(origin);
    }

    /// Logs a warning about a skew once, and again when it has changed much.
    fn skew_is(&mut self, skew: ClockSkew) {
        self.skew = skew;
        let is_large = skew.differs_from(ClockSkew::default());
        match self.warned {
            Some(_) if !is_large => {
                self.warned = None;
                info!("the clock of this machine agrees with the database's again");
            }
            Some(warned) if !skew.differs_from(warned) => {}
            _ if is_large => {
                self.warned = Some(skew);
                warn!(ahead_seconds = skew.ahead_seconds();
                    "the clock of this machine is {skew}; stored times are the database's, but the \
                     times in this log are not: set the clock");
            }
            _ => {}
        }
    }
}

fn origin_of(database: Timestamp, monotonic: MonotonicTime) -> i64 {
    let elapsed = monotonic.since(MonotonicTime::default()).as_micros();
    database.as_micros().saturating_sub(i64::try_from(elapsed).unwrap_or(i64::MAX))
}

impl fmt::Debug for DatabaseClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseClock").field("skew", &self.skew()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ManualClock;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    /// A machine whose time of day is 1,000 s, and a clock that was measured as 5,000 s.
    fn measured() -> (Arc<ManualClock>, DatabaseClock) {
        let machine = Arc::new(ManualClock::at(at(1_000)));
        let clock = DatabaseClock::new(machine.clone());
        measure(&machine, &clock, at(5_000));
        (machine, clock)
    }

    /// Reads the database's clock, which takes two seconds. The database reads it in the middle.
    fn measure(machine: &ManualClock, clock: &DatabaseClock, database: Timestamp) {
        let before = machine.monotonic();
        machine.advance(SECOND * 2);
        clock.follow(Reading { before, database, after: machine.monotonic() });
    }

    #[test]
    fn clock_that_is_not_measured_shows_the_machines_time() {
        let machine = Arc::new(ManualClock::at(at(7)));
        assert_eq!(DatabaseClock::new(machine.clone()).now(), at(7));
        let simulated = DatabaseClock::simulated(machine.clone());
        measure(&machine, &simulated, at(5_000));
        assert_eq!((simulated.now(), simulated.skew()), (at(9), ClockSkew::default()));
    }

    #[test]
    fn measured_clock_ignores_jumps_of_the_machine() {
        let (machine, clock) = measured();
        assert_eq!(clock.now(), at(5_001));
        for time in [at(0), at(1_000_000)] {
            machine.set(time);
            assert_eq!(clock.now(), at(5_001));
        }
        machine.advance(SECOND * 10);
        assert_eq!(clock.now(), at(5_011));
    }

    #[test]
    fn measurement_that_agrees_changes_nothing() {
        let (machine, clock) = measured();
        // At 5,001 s, the database answers within two seconds: at 5,001 s to 5,003 s.
        for (database, now) in [(5_001, 5_003), (5_005, 5_005), (5_006, 5_007), (5_006, 5_008)] {
            measure(&machine, &clock, at(database));
            assert_eq!(clock.now(), at(now), "{database}");
        }
    }

    #[test]
    fn jump_of_the_database_is_followed() {
        for jump in [-3_600, 180] {
            let (machine, clock) = measured();
            measure(&machine, &clock, at(5_001 + jump));
            let off_by = clock.now().as_micros().abs_diff(at(5_002 + jump).as_micros());
            assert!(off_by <= 1_000_000, "{off_by}");
        }
    }

    #[test]
    fn skew_is_measured_and_warned_of_when_it_changes() {
        let (_, clock) = measured();
        assert_eq!(clock.skew().ahead_seconds(), -3_999.0);
        assert_eq!(clock.skew().to_string(), "3999.0 s behind the database's");

        let mut measured = Measured::default();
        let warned = [0, 2, 4, 5, 600, 2, 4].map(|seconds| {
            let before = measured.warned;
            measured.skew_is(ClockSkew { ahead_micros: seconds * 1_000_000 });
            measured.warned.is_some() && measured.warned != before
        });
        assert_eq!(warned, [false, false, true, false, true, false, true]);
    }
}
