use std::fmt;

use futures_core::future::BoxFuture;

use crate::{InternalError, Outcome, ScopeId};

/// Resolves where a batch is sent. It is called for each attempt.
pub trait UrlResolver: fmt::Debug + Sync + Send {
    /// The scope of the batches.
    type Id: ScopeId;

    /// The URL for batches of this scope, or [`NO_ADDRESS`] and the reason why there is none.
    fn url(&self, scope_id: &Self::Id) -> String;

    /// Succeeds if a batch may be sent to `url` now. The error is the reason why not, in words.
    fn confirm<'a>(&'a self, _url: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    /// An attempt to send this batch to `url` had this outcome: [`Refused`](Outcome::Refused) also if [`confirm`] failed.
    /// It is called on the threads that send, so it must return quickly.
    ///
    /// [`confirm`]: Self::confirm
    fn report(&self, _batch_header: &str, _url: &str, _outcome: Outcome) {}
}

/// The prefix of a [`UrlResolver`]'s answer when it has no address for a scope. The reason follows it.
///
/// The batch is not sent, and its outcome is [`Refused`](Outcome::Refused).
pub const NO_ADDRESS: &str = "no-address:";

/// Shuts a component down in two steps, so that several can shut down at the same time.
pub trait ShutdownHandle {
    /// Requests the shutdown.
    fn signal_shutdown(&mut self) -> Result<(), InternalError>;

    /// Waits until it has shut down.
    fn wait_for_shutdown(self) -> Result<(), InternalError>;
}
