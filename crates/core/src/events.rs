use futures_core::stream::BoxStream;

use crate::monitor::BatchResult;

/// An event that a ledger sends on its event stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LedgerEvent {
    /// The transaction that was applied, if the ledger names it.
    pub transaction_id: Option<String>,
    /// The ledger has reported the transaction before, and does not repeat earlier events now: it has applied
    /// it a second time.
    pub is_repeated: bool,
}

/// A stream of events. It ends when the connection breaks; an error is always its last item.
pub type LedgerEventStream = BoxStream<'static, BatchResult<LedgerEvent>>;
