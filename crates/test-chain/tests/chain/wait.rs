use std::{
    thread,
    time::{Duration, Instant},
};

/// Longer than anything takes that comes at all.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
