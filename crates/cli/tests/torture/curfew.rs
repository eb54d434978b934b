use std::{
    sync::{Condvar, Mutex},
    time::Duration,
};

/// A time at which all must come to an end.
#[derive(Debug, Default)]
pub struct Curfew {
    is_over: Mutex<bool>,
    rings: Condvar,
}

/// Rings when it is dropped: whoever waits for the end must not wait for ever when a test fails.
pub struct Ringer<'a>(pub &'a Curfew);

impl Curfew {
    pub fn ring(&self) {
        *self.is_over.lock().unwrap() = true;
        self.rings.notify_all();
    }

    pub fn is_over(&self) -> bool {
        *self.is_over.lock().unwrap()
    }

    /// Sleeps for so long, or until the end. Whether time is left.
    pub fn sleep(&self, duration: Duration) -> bool {
        let is_over = self.is_over.lock().unwrap();
        let (is_over, _) =
            self.rings.wait_timeout_while(is_over, duration, |is_over| !*is_over).unwrap();
        !*is_over
    }
}

impl Drop for Ringer<'_> {
    fn drop(&mut self) {
        self.0.ring();
    }
}
