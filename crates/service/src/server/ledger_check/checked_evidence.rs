use std::{marker::PhantomData, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    BatchError, BatchResult, Evidence, EvidenceReader, EvidenceReport, ScopeId, StatusUrlResolver,
    UnresolvedBatch,
};

use super::{LedgerCheck, checked_statuses::check_any_confirmed, refused_services::check_scope};

/// Looks for evidence about services that the ledger can have, at nodes that have confirmed their
/// ledger.
///
/// Absence counts only if every node confirms its ledger again after it was asked.
pub(in crate::server) struct CheckedEvidenceReader<S> {
    reader: Arc<dyn EvidenceReader + Sync>,
    /// All nodes.
    nodes: Arc<dyn StatusUrlResolver>,
    check: LedgerCheck,
    scope: PhantomData<fn() -> S>,
}

impl<S: ScopeId> CheckedEvidenceReader<S> {
    pub(in crate::server) fn new(
        reader: Arc<dyn EvidenceReader + Sync>,
        nodes: Arc<dyn StatusUrlResolver>,
        check: LedgerCheck,
    ) -> Self {
        Self { reader, nodes, check, scope: PhantomData }
    }

    async fn find(&self, batch: &UnresolvedBatch) -> BatchResult<EvidenceReport> {
        check_scope::<S>(batch.service_id.as_str())?;
        let id = batch.batch_id.to_string();
        let nodes = self.nodes.status_urls(batch.service_id.as_str(), &id);
        check_any_confirmed(&self.check, &nodes)?;
        let result = self.reader.find_evidence(batch).await;
        match result {
            Ok(report)
                if report.evidence.is_absence() && !self.are_all_confirmed_now(&nodes).await =>
            {
                let detail = "a node does not confirm that it belongs to the ledger any more";
                Ok(EvidenceReport::with_detail(Evidence::Inconclusive, detail))
            }
            Err(BatchError::Unavailable(_)) => {
                nodes.iter().for_each(|node| self.check.connection_failed(node));
                result
            }
            _ => result,
        }
    }

    async fn are_all_confirmed_now(&self, nodes: &[String]) -> bool {
        for node in nodes {
            self.check.connection_failed(node);
            if self.check.confirm_now(node).await.is_err() {
                return false;
            }
        }
        true
    }
}

impl<S: ScopeId> EvidenceReader for CheckedEvidenceReader<S> {
    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
        Box::pin(self.find(batch))
    }
}
