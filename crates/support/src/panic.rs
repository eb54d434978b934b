use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use futures_util::FutureExt;
use grid_batch_core::BatchError;
use tokio::task::JoinError;

use crate::redact_userinfo;

/// A caught panic: its message, without the secrets in URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panic(String);

impl Panic {
    /// The message.
    pub fn message(&self) -> &str {
        &self.0
    }
}

/// Calls a function of other code and catches its panic.
///
/// The caller may continue to use the object that panicked, as after an error.
pub fn catch_panic<T>(call: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(call)).map_err(Panic::from)
}

/// Awaits a future of other code and catches its panic.
pub async fn catch_panic_async<F: Future>(future: F) -> Result<F::Output, Panic> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(Panic::from)
}

impl From<Box<dyn Any + Send>> for Panic {
    fn from(payload: Box<dyn Any + Send>) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("without a message");
        Self(redact_userinfo(text).into_owned())
    }
}

/// A cancelled task is treated like a panic, because it ended without a result.
impl From<JoinError> for Panic {
    fn from(error: JoinError) -> Self {
        match error.try_into_panic() {
            Ok(panic) => Self::from(panic),
            Err(error) => Self(error.to_string()),
        }
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<Panic> for BatchError {
    fn from(panic: Panic) -> Self {
        Self::InternalError(format!("it panicked: {panic}"))
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn panic_becomes_its_message() {
        assert_eq!(catch_panic(|| 1), Ok(1));
        let caught = catch_panic(|| panic!("number {}", 7)).unwrap_err();
        assert_eq!(caught.message(), "number 7");
        assert_eq!(catch_panic_async(ready(2)).await, Ok(2));
    }

    #[tokio::test]
    async fn message_of_a_panic_has_no_password() {
        let caught = catch_panic_async(async { panic!("to http://u:secret@host") }).await;
        assert_eq!(caught.unwrap_err().message(), "to http://host");
    }
}
