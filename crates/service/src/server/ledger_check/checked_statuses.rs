use std::{marker::PhantomData, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    BatchError, BatchResult, BatchStatusReader, ScopeId, StatusReport, StatusUrlResolver,
};

use super::{LedgerCheck, refused_services::check_scope};

/// Reads statuses of services that the ledger can have, from nodes that have confirmed their ledger.
pub(in crate::server) struct CheckedStatusReader<S> {
    reader: Arc<dyn BatchStatusReader<Status = StatusReport> + Sync>,
    /// All nodes.
    nodes: Arc<dyn StatusUrlResolver>,
    check: LedgerCheck,
    scope: PhantomData<fn() -> S>,
}

impl<S: ScopeId> CheckedStatusReader<S> {
    pub(in crate::server) fn new(
        reader: Arc<dyn BatchStatusReader<Status = StatusReport> + Sync>,
        nodes: Arc<dyn StatusUrlResolver>,
        check: LedgerCheck,
    ) -> Self {
        Self { reader, nodes, check, scope: PhantomData }
    }
}

impl<S: ScopeId> BatchStatusReader for CheckedStatusReader<S> {
    type Status = StatusReport;

    fn get_batch_statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Box::pin(async move {
            check_scope::<S>(service_id)?;
            let Some(first) = batch_ids.first() else { return Ok(Vec::new()) };
            let nodes = self.nodes.status_urls(service_id, first);
            if let Err(error) = check_any_confirmed(&self.check, &nodes) {
                self.check.0.waiting.add(service_id);
                return Err(error);
            }
            self.check.expect_of(service_id);
            let result = self.reader.get_batch_statuses(service_id, batch_ids).await;
            if let Err(BatchError::Unavailable(_)) = &result {
                self.check.0.waiting.add(service_id);
                nodes.iter().for_each(|node| self.check.connection_failed(node));
            }
            result
        })
    }

    fn available_connections(&self) -> usize {
        self.reader.available_connections()
    }
}

/// An error if none of these nodes can be asked. Without nodes, the reader itself has the error.
pub(super) fn check_any_confirmed(check: &LedgerCheck, nodes: &[String]) -> BatchResult<()> {
    if nodes.is_empty() || nodes.iter().any(|node| check.is_confirmed(node)) {
        return Ok(());
    }
    let reason = "no node has confirmed that it belongs to the ledger of the database";
    Err(match check.unusable(nodes) {
        Some(problems) => BatchError::InvalidAnswer(format!("{reason} ({problems})")),
        None => BatchError::Unavailable(reason.to_owned()),
    })
}
