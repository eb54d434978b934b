use std::{fmt, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use grid_batch_core::{
    AttemptId, BatchResult, Evidence, EvidenceReader, EvidenceReport, HeaderId, LedgerStatus,
    MonotonicTime, ServiceScopeId, UnresolvedBatch,
};
use log::{debug, info};

use crate::{
    batch_history::{BatchKey, FirstPost, StalledStatus},
    context::{ScabbardContext, parse_scope},
};

/// Looks for evidence of a batch. Reports that a node has it are always evidence; reports that it
/// has not are evidence only if no event of the batch can have been missed.
pub struct ScabbardEvidenceReader(pub(crate) Arc<ScabbardContext>);

/// The status of a batch at all nodes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CombinedStatus {
    /// The strongest status that a node reports.
    status: LedgerStatus,
    /// Every node reported a status.
    is_complete: bool,
}

impl CombinedStatus {
    /// `None` stands for a node that failed.
    fn new(statuses: &[Option<LedgerStatus>]) -> Self {
        use LedgerStatus::{Committed, Invalid, NotReported, Pending, Valid};
        let is_reported = |status: &LedgerStatus| statuses.contains(&Some(*status));
        let status = [Committed, Invalid, Pending, Valid].into_iter().find(is_reported);
        Self {
            status: status.unwrap_or(NotReported),
            is_complete: !statuses.is_empty() && statuses.iter().all(Option::is_some),
        }
    }
}

impl ScabbardEvidenceReader {
    async fn find(&self, unresolved: &UnresolvedBatch) -> BatchResult<Evidence> {
        let scope = parse_scope(unresolved.service_id.as_str())?;
        let batch = (unresolved.service_id.clone(), unresolved.batch_id);
        let batch_id = unresolved.batch_id.to_string();
        if self.is_committed(unresolved, &batch) {
            return Ok(Evidence::Committed);
        }
        let queried_at = self.0.clock.monotonic();
        let combined = CombinedStatus::new(&self.query_all_nodes(&scope, &batch_id).await?);
        // Check the subscription before the transactions: then the events that it had received
        // when it was caught up are among the transactions.
        let missed_nothing = self.missed_nothing(&batch, unresolved.attempt_id);
        if self.is_committed(unresolved, &batch) {
            return Ok(Evidence::Committed);
        }
        let transactions = &unresolved.transaction_ids;
        let may_be_absent = missed_nothing
            && !transactions.is_empty()
            && self.0.applied.count(&batch.0, transactions) == 0;
        let stalled_for = self.stalled_for(&batch, combined, queried_at);
        let evidence = self.evidence_from(combined, may_be_absent, stalled_for);
        if evidence == Evidence::Absent {
            let status = combined.status;
            info!(
                batch_id = batch_id.as_str(), service:% = scope, status:? = status;
                "the batch is absent from the ledger"
            );
        }
        Ok(evidence)
    }

    /// Whether a node has reported the batch as committed, or events prove it.
    fn is_committed(&self, unresolved: &UnresolvedBatch, batch: &BatchKey) -> bool {
        self.0.history.is_committed(batch) || self.is_proved_by_events(unresolved, batch)
    }

    /// Whether events prove that the batch was committed: they name all of its transactions; at least
    /// one is in no other batch; and those were not applied before the first POST of this batch.
    fn is_proved_by_events(&self, unresolved: &UnresolvedBatch, batch: &BatchKey) -> bool {
        let first_post_at = match self.0.history.first_post(batch, unresolved.attempt_id.attempt) {
            FirstPost::None => return false,
            FirstPost::Here { at, .. } => Some(at),
            FirstPost::Elsewhere => None,
        };
        let UnresolvedBatch { transaction_ids: all, shared_transaction_ids: shared, .. } =
            unresolved;
        let is_own = |id: &&HeaderId| !shared.contains(*id);
        let is_applied = |id: &HeaderId| {
            let after = if is_own(&id) { first_post_at } else { None };
            self.0.applied.has_event(&batch.0, id, after)
        };
        all.iter().any(|id| is_own(&id)) && all.iter().all(is_applied)
    }

    /// The status at each node; `None` for a node that fails.
    async fn query_all_nodes(
        &self,
        scope: &ServiceScopeId,
        batch_id: &str,
    ) -> BatchResult<Vec<Option<LedgerStatus>>> {
        let nodes = self.0.nodes_of_batch(scope, batch_id)?;
        let ids = [batch_id];
        let queries = nodes.iter().map(|node| self.0.query_statuses(node, scope, &ids));
        let results = join_all(queries).await;
        Ok(results
            .into_iter()
            .map(|result| match result {
                Ok(reports) => reports.first().map(|batch| batch.report.status),
                Err(error) => {
                    debug!(
                        batch_id = batch_id, service:% = scope, error:% = error;
                        "cannot read evidence from this node"
                    );
                    None
                }
            })
            .collect())
    }

    /// Whether the subscription that was live at the first POST is still live and caught up.
    fn missed_nothing(&self, batch: &BatchKey, attempt_id: AttemptId) -> bool {
        match self.0.history.first_post(batch, attempt_id.attempt) {
            FirstPost::Here { subscription: Some(id), .. } => {
                self.0.subscriptions.caught_up(&batch.0) == Some(id)
            }
            _ => false,
        }
    }

    /// How long the batch had had its present status when the nodes were queried.
    fn stalled_for(
        &self,
        batch: &BatchKey,
        combined: CombinedStatus,
        queried_at: MonotonicTime,
    ) -> Duration {
        let status = match combined.status {
            LedgerStatus::Valid => StalledStatus::Valid,
            LedgerStatus::NotReported if combined.is_complete => StalledStatus::Unknown,
            LedgerStatus::NotReported => return Duration::ZERO,
            _ => {
                self.0.history.clear_stall(batch);
                return Duration::ZERO;
            }
        };
        queried_at.since(self.0.history.record_stall(batch, status, self.0.clock.monotonic()))
    }

    fn evidence_from(
        &self,
        combined: CombinedStatus,
        may_be_absent: bool,
        stalled_for: Duration,
    ) -> Evidence {
        let is_gone = |after| combined.is_complete && may_be_absent && stalled_for >= after;
        match combined.status {
            LedgerStatus::Committed => Evidence::Committed,
            // The status reader handles invalid batches; here they only must not be absent.
            LedgerStatus::Invalid => Evidence::Inconclusive,
            LedgerStatus::Pending => Evidence::Present,
            LedgerStatus::Valid if is_gone(self.0.dropped_after) => Evidence::Absent,
            LedgerStatus::Valid => Evidence::Present,
            LedgerStatus::NotReported if is_gone(self.0.absent_after) => Evidence::Absent,
            LedgerStatus::NotReported => Evidence::Inconclusive,
        }
    }
}

impl EvidenceReader for ScabbardEvidenceReader {
    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
        Box::pin(async { self.find(batch).await.map(EvidenceReport::from) })
    }
}

impl fmt::Debug for ScabbardEvidenceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScabbardEvidenceReader")
            .field("nodes", &self.0.nodes)
            .finish_non_exhaustive()
    }
}
