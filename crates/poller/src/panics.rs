use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use futures_util::FutureExt;
use grid_batch_core::BatchError;

/// The message of a panic.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Panic(String);

/// Calls what others wrote, and survives it.
///
/// What panicked is used again: half-done work is its own affair, as it would be after an error.
pub(crate) fn catch<T>(call: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(call)).map_err(Panic::from)
}

/// The same for a future.
pub(crate) async fn catch_future<T>(call: impl Future<Output = T>) -> Result<T, Panic> {
    AssertUnwindSafe(call).catch_unwind().await.map_err(Panic::from)
}

impl From<Box<dyn Any + Send>> for Panic {
    fn from(panic: Box<dyn Any + Send>) -> Self {
        let text = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("without a message");
        Self(text.to_owned())
    }
}

impl From<Panic> for BatchError {
    fn from(Panic(message): Panic) -> Self {
        Self::InternalError(format!("it panicked: {message}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_its_message() {
        assert_eq!(catch(|| 1), Ok(1));
        assert_eq!(catch(|| panic!("said {}", "so")), Err::<(), _>(Panic("said so".to_owned())));
        let caught = catch_future(async { panic!("said so") }).await;
        assert_eq!(caught, Err::<(), _>(Panic("said so".to_owned())));
    }
}
