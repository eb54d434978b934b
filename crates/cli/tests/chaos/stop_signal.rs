use std::{
    sync::{Condvar, Mutex},
    time::Duration,
};

/// Tells threads to stop, and wakes those that sleep.
#[derive(Debug, Default)]
pub struct StopSignal {
    is_requested: Mutex<bool>,
    requested: Condvar,
}

/// Requests the stop when it is dropped, so that threads also stop when a test panics.
pub struct RequestOnDrop<'a>(pub &'a StopSignal);

impl StopSignal {
    pub fn request(&self) {
        *self.is_requested.lock().unwrap() = true;
        self.requested.notify_all();
    }

    pub fn is_requested(&self) -> bool {
        *self.is_requested.lock().unwrap()
    }

    /// Sleeps for this long or until the stop is requested. Returns whether to continue.
    pub fn sleep(&self, duration: Duration) -> bool {
        let is_requested = self.is_requested.lock().unwrap();
        let (is_requested, _) = self
            .requested
            .wait_timeout_while(is_requested, duration, |is_requested| !*is_requested)
            .unwrap();
        !*is_requested
    }
}

impl Drop for RequestOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request();
    }
}
