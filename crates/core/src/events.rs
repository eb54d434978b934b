use futures_core::{future::BoxFuture, stream::BoxStream};

use crate::monitor::BatchResult;

/// Something that a ledger says by itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LedgerEvent {
    /// The transaction that was applied, where the ledger names it.
    pub transaction_id: Option<String>,
}

/// Events until the stream breaks: an error is its last item, and its end is a break too.
pub type LedgerEventStream = BoxStream<'static, BatchResult<LedgerEvent>>;

/// Listens to what a ledger says by itself.
///
/// Events only hurry the poller: any may be lost.
pub trait LedgerEvents: Send + Sync {
    /// Begins to listen to a service. The stream is live when this is answered.
    fn subscribe<'a>(
        &'a self,
        service_id: &'a str,
    ) -> BoxFuture<'a, BatchResult<LedgerEventStream>>;
}
