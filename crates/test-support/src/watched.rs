//! Waiting for a change by another thread, without polling.

use std::{
    sync::{Condvar, Mutex},
    time::Duration,
};

/// Longer than any change takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A value that threads share and whose changes a test waits for.
#[derive(Debug, Default)]
pub struct WatchedValue<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> WatchedValue<T> {
    /// Changes the value, and wakes the threads that wait for it.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.value.lock().unwrap());
        self.changed.notify_all();
        result
    }

    /// Waits until the value meets the condition. Panics if it does not in time.
    #[track_caller]
    pub fn wait_until(&self, condition: impl Fn(&T) -> bool) {
        let value = self.value.lock().unwrap();
        let (_value, result) =
            self.changed.wait_timeout_while(value, LIMIT, |value| !condition(value)).unwrap();
        assert!(!result.timed_out(), "timed out after {LIMIT:?}: the condition does not hold");
    }
}

impl<T: Clone> WatchedValue<T> {
    /// A copy of the value.
    pub fn get(&self) -> T {
        self.value.lock().unwrap().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_by_another_thread_ends_the_wait() {
        let count = WatchedValue::<u32>::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..3).for_each(|_| count.change(|count| *count += 1)));
            count.wait_until(|count| *count == 3);
        });
        assert_eq!(count.get(), 3);
    }
}
