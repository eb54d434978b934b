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
        let reports = self.find_all(std::slice::from_ref(batch)).await;
        reports.into_iter().next().unwrap_or(Ok(Evidence::Inconclusive.into()))
    }

    /// The batches are of one service, and its nodes are asked about all.
    async fn find_all(&self, batches: &[UnresolvedBatch]) -> Vec<BatchResult<EvidenceReport>> {
        let Some(first) = batches.first() else { return Vec::new() };
        let nodes = match self.nodes_of(first) {
            Ok(nodes) => nodes,
            Err(error) => return batches.iter().map(|_| Err(error.clone())).collect(),
        };
        let mut reports = self.reader.find_evidence_of_all(batches).await;
        if reports.iter().any(|report| matches!(report, Err(BatchError::Unavailable(_)))) {
            nodes.iter().for_each(|node| self.check.connection_failed(node));
        }
        if reports.iter().any(is_absence) && !self.are_all_confirmed_now(&nodes).await {
            let detail = "a node does not confirm that it belongs to the ledger any more";
            for report in reports.iter_mut().filter(|report| is_absence(report)) {
                *report = Ok(EvidenceReport::with_detail(Evidence::Inconclusive, detail));
            }
        }
        reports
    }

    fn nodes_of(&self, batch: &UnresolvedBatch) -> BatchResult<Vec<String>> {
        let service = batch.service_id.as_str();
        check_scope::<S>(service)?;
        let nodes = self.nodes.status_urls(service, &batch.batch_id.to_string());
        check_any_confirmed(&self.check, &nodes)?;
        Ok(nodes)
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

fn is_absence(report: &BatchResult<EvidenceReport>) -> bool {
    report.as_ref().is_ok_and(|report| report.evidence.is_absence())
}

impl<S: ScopeId> EvidenceReader for CheckedEvidenceReader<S> {
    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
        Box::pin(self.find(batch))
    }

    fn find_evidence_of_all<'a>(
        &'a self,
        batches: &'a [UnresolvedBatch],
    ) -> BoxFuture<'a, Vec<BatchResult<EvidenceReport>>> {
        Box::pin(self.find_all(batches))
    }

    fn is_needed(&self, service_id: &str, batch_id: &str) -> bool {
        self.reader.is_needed(service_id, batch_id)
    }
}
