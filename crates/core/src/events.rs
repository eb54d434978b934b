use futures_core::{future::BoxFuture, stream::BoxStream};

use crate::monitor::BatchResult;

/// An event that a ledger sends on its event stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LedgerEvent {
    /// The transaction that was applied, if the ledger names it.
    pub transaction_id: Option<String>,
    /// The ledger has told of the transaction before, and does not repeat earlier events now: it has applied
    /// it a second time.
    pub is_repeated: bool,
}

/// A stream of events. It ends when the connection breaks; an error is always its last item.
pub type LedgerEventStream = BoxStream<'static, BatchResult<LedgerEvent>>;

/// Subscribes to the events of a ledger.
///
/// Events are hints that make the poller ask sooner; any of them may be lost.
pub trait LedgerEvents: Send + Sync {
    /// Subscribes to a service. The stream is live when the future resolves.
    fn subscribe<'a>(
        &'a self,
        service_id: &'a str,
    ) -> BoxFuture<'a, BatchResult<LedgerEventStream>>;

    /// The node of the latest subscription to this service, for messages.
    fn node(&self, _service_id: &str) -> Option<String> {
        None
    }
}
