use std::sync::Arc;

use futures_util::future::BoxFuture;
use grid_batch_core::BatchResult;
use grid_batch_core::batches::StatusReport;
use grid_batch_core::ledger::Ledger;
use grid_batch_core::polling::BatchStatus;

/// Reads the statuses of batches from a ledger.
pub trait BatchStatusReader: Send {
    /// The status type.
    type Status: BatchStatus;

    /// The statuses of these batches of one service.
    fn get_batch_statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<Self::Status>>>;

    /// How many requests may be in flight at once.
    fn available_connections(&self) -> usize;
}

/// Uses a ledger as the status reader of a poller.
#[derive(Clone)]
pub struct LedgerStatusReader(pub Arc<dyn Ledger>);

impl BatchStatusReader for LedgerStatusReader {
    type Status = StatusReport;

    fn get_batch_statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Box::pin(async move {
            self.0.check_asked_service(service_id)?;
            self.0.statuses(service_id, batch_ids).await
        })
    }

    fn available_connections(&self) -> usize {
        self.0.connections()
    }
}
