use std::{
    thread,
    time::{Duration, Instant},
};

/// Longer than any wait of these tests takes.
pub const TIMEOUT: Duration = Duration::from_secs(30);

pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "timeout: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
