use std::sync::{Mutex, MutexGuard, PoisonError};

/// The value of a mutex. A thread that panicked while it had the mutex has not left a change half done that others would
/// see: use it where each change is complete, or only costs what can be found again.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
