use futures_core::future::BoxFuture;

use crate::{HeaderId, ServiceId, monitor::BatchResult};

/// Asks a ledger about batches before it is their turn to be sent.
///
/// Some ledgers must not be sent what they have already, so their adapters ask before each batch. When
/// the answer is there before the batch's turn, the batch does not wait for it.
pub trait AskAhead: Send + Sync {
    /// Asks about these batches of a service, and remembers the answers for the sender. After a
    /// failure, the sender asks itself. It has a timeout of its own.
    fn ask_ahead<'a>(
        &'a self,
        service_id: &'a ServiceId,
        batch_ids: &'a [HeaderId],
    ) -> BoxFuture<'a, ()>;
}

/// A store that knows which batches are sent next.
pub trait NextBatchStore: Send {
    /// The batches that follow the present ones of these services: those that are sent next, not more of a
    /// service than a ledger can be asked about with one request.
    fn next_batches(&self, services: &[ServiceId]) -> BatchResult<Vec<(ServiceId, HeaderId)>>;
}
