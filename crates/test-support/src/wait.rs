//! Waiting for a condition, with a limit.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Longer than any condition takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Waits until the condition holds. Panics with its description if it does not hold in time.
#[track_caller]
pub fn wait_until(description: &str, mut condition: impl FnMut() -> bool) {
    wait_for(description, || condition().then_some(()));
}

/// Waits until `find` returns a value. Panics with the description if it does not in time.
#[track_caller]
pub fn wait_for<T>(description: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(started.elapsed() < LIMIT, "timed out after {LIMIT:?}: {description}");
        thread::sleep(CHECK_INTERVAL);
    }
}
