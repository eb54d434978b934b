use std::{
    thread,
    time::{Duration, Instant},
};

/// Longer than anything takes on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(40);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until it is so, and panics with `what` where it never is.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    until_some(what, || is_so().then_some(()));
}

/// Waits until there is one.
pub fn until_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(LOOK_EVERY);
    }
}
