//! A clock that jumps.

use std::{
    sync::atomic::{AtomicI64, Ordering::SeqCst},
    time::Duration,
};

use grid_batch_core::{Clock, MonotonicTime, SystemClock, Timestamp};

/// The clocks of a machine whose time of day is set forward and back while a server runs.
#[derive(Debug, Default)]
pub struct JumpingClock {
    /// In microseconds.
    ahead: AtomicI64,
}

impl JumpingClock {
    /// Sets the time of day forward.
    pub fn set_forward(&self, by: Duration) {
        self.ahead.fetch_add(micros(by), SeqCst);
    }

    /// Sets the time of day back.
    pub fn set_back(&self, by: Duration) {
        self.ahead.fetch_sub(micros(by), SeqCst);
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap()
}

impl Clock for JumpingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(SystemClock.now().as_micros() + self.ahead.load(SeqCst))
    }

    fn monotonic(&self) -> MonotonicTime {
        SystemClock.monotonic()
    }
}
