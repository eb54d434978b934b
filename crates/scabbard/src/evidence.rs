use std::{fmt, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use grid_batch_core::{
    AttemptId, BatchResult, Evidence, EvidenceReader, LedgerStatus, ServiceScopeId, Timestamp,
    UnresolvedBatch,
};
use log::{debug, info};

use crate::{
    batches::{BatchName, FirstPost, Standstill},
    shared::{Shared, scope_of},
};

/// Looks for proof of what became of a batch: presence proves; absence only while nothing of it can
/// have been missed.
pub struct ScabbardEvidenceReader(pub(crate) Arc<Shared>);

/// What the nodes say of a batch together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Common {
    /// The word that counts most, of those that are said.
    status: LedgerStatus,
    /// Every node answered.
    is_complete: bool,
}

impl Common {
    /// `None` is a node that does not say.
    fn of(answers: &[Option<LedgerStatus>]) -> Self {
        use LedgerStatus::{Committed, Invalid, NotReported, Pending, Valid};
        let said = |status: &LedgerStatus| answers.contains(&Some(*status));
        let status = [Committed, Invalid, Pending, Valid].into_iter().find(said);
        Self {
            status: status.unwrap_or(NotReported),
            is_complete: !answers.is_empty() && answers.iter().all(Option::is_some),
        }
    }
}

impl ScabbardEvidenceReader {
    async fn find(&self, doubt: &UnresolvedBatch) -> BatchResult<Evidence> {
        let scope = scope_of(doubt.service_id.as_str())?;
        let batch = (doubt.service_id.clone(), doubt.batch_id);
        let batch_id = doubt.batch_id.to_string();
        let transactions = &doubt.transaction_ids;
        if self.0.seen.has_any(&batch.0, transactions) {
            return Ok(Evidence::Committed);
        }
        let asked_at = self.0.clock.now();
        let common = Common::of(&self.ask_all(&scope, &batch_id).await?);
        // In this order: what was heard before the socket was caught up has been seen.
        let is_watched = self.is_watched(&batch, doubt.attempt_id) && !transactions.is_empty();
        if self.0.seen.has_any(&batch.0, transactions) {
            return Ok(Evidence::Committed);
        }
        let stood_for = self.stood_for(&batch, common, asked_at);
        let evidence = self.weigh(common, is_watched, stood_for);
        if evidence == Evidence::Absent {
            let status = common.status;
            info!(batch = batch_id.as_str(), service:% = scope, status:? = status; "a batch is not there");
        }
        Ok(evidence)
    }

    /// What each node says.
    async fn ask_all(
        &self,
        scope: &ServiceScopeId,
        batch_id: &str,
    ) -> BatchResult<Vec<Option<LedgerStatus>>> {
        let nodes = self.0.nodes_of(scope, batch_id)?;
        let ids = [batch_id];
        let answers = join_all(nodes.iter().map(|node| self.0.ask(node, scope, &ids))).await;
        Ok(answers
            .into_iter()
            .map(|answer| match answer {
                Ok(told) => told.first().map(|told| told.report.status),
                Err(error) => {
                    debug!(batch = batch_id, service:% = scope, error:% = error; "no evidence");
                    None
                }
            })
            .collect())
    }

    /// Whether the socket that was live when the batch was first sent is heard, and never broke.
    fn is_watched(&self, batch: &BatchName, attempt_id: AttemptId) -> bool {
        match self.0.batches.first_post(batch, attempt_id.attempt) {
            FirstPost::Watched(socket) => self.0.watch.caught_up(&batch.0) == Some(socket),
            FirstPost::None | FirstPost::Unwatched => false,
        }
    }

    /// How long the batch had stood where it stands when the nodes were asked.
    fn stood_for(&self, batch: &BatchName, common: Common, asked_at: Timestamp) -> Duration {
        let standstill = match common.status {
            LedgerStatus::Valid => Standstill::Valid,
            LedgerStatus::NotReported if common.is_complete => Standstill::Unknown,
            LedgerStatus::NotReported => return Duration::ZERO,
            _ => {
                self.0.batches.moves(batch);
                return Duration::ZERO;
            }
        };
        asked_at.since(self.0.batches.stands(batch, standstill, self.0.clock.now()))
    }

    fn weigh(&self, common: Common, is_watched: bool, stood_for: Duration) -> Evidence {
        let is_gone = |after| common.is_complete && is_watched && stood_for >= after;
        match common.status {
            LedgerStatus::Committed => Evidence::Committed,
            // A status is read by whoever reads statuses; here it only must not pass for absence.
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
        doubt: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<Evidence>> {
        Box::pin(self.find(doubt))
    }
}

impl fmt::Debug for ScabbardEvidenceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScabbardEvidenceReader")
            .field("nodes", &self.0.nodes)
            .finish_non_exhaustive()
    }
}
