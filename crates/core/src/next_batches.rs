use crate::{ItemId, ServiceId, monitor::BatchResult};

/// A store that knows which batches are sent next.
pub trait NextBatchStore: Send {
    /// The batches that follow the present ones of these services: those that are sent next, not more of a
    /// service than a ledger can be asked about with one request.
    fn next_batches(&self, services: &[ServiceId]) -> BatchResult<Vec<(ServiceId, ItemId)>>;
}
