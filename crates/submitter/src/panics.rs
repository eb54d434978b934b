use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::Poll,
};

use crate::redact::without_userinfo;

/// Calls what others wrote; if it panics, its message.
///
/// What panicked is used again: half-done work is its own affair, as it would be after an error.
pub(crate) fn catch<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| message(panic.as_ref()))
}

/// The same for a future.
pub(crate) async fn catch_future<F: Future + Unpin>(mut future: F) -> Result<F::Output, String> {
    poll_fn(|context| match catch(|| Pin::new(&mut future).poll(context)) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message");
    without_userinfo(text).into_owned()
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_its_message() {
        assert_eq!(catch(|| 1), Ok(1));
        assert_eq!(catch(|| panic!("said {}", "so")), Err::<(), _>("said so".to_owned()));
        assert_eq!(catch_future(ready(2)).await, Ok(2));
        let panics = Box::pin(async { panic!("to http://u:secret@host") });
        assert_eq!(catch_future(panics).await, Err::<(), _>("to http://host".to_owned()));
    }
}
