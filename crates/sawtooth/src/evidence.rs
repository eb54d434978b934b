use futures_util::future::join_all;
use grid_batch_core::batches::{BatchState, LedgerStatus};
use grid_batch_core::evidence::{Evidence, EvidenceReport, UnresolvedBatch};
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_http::origin;
use tokio::time::sleep;

use crate::{
    Sawtooth,
    in_chain::{InChain, is_in_chain},
    nodes::{ReportsById, get_reports_by_id, nodes_of_batch},
    outages::ObservedOutage,
    statuses::StatusAtNode,
};

/// The number of batches about which a node is asked at the same time. A validator has five threads for all of its
/// clients.
const BATCHES_AT_ONCE: usize = 4;

/// Searches every node of a batch for evidence: in its status, in the blocks, and in its transactions.
impl Sawtooth {
    fn nodes_of(&self, batch: &UnresolvedBatch) -> BatchResult<Vec<String>> {
        let id = batch.batch_id.to_string();
        nodes_of_batch(&*self.nodes, batch.service_id.as_str(), &id)
    }

    pub(crate) async fn find_at_their_nodes(
        &self,
        batches: &[UnresolvedBatch],
    ) -> Vec<BatchResult<EvidenceReport>> {
        let mut reports = Vec::with_capacity(batches.len());
        let same_nodes = |one: &_, other: &_| self.nodes_of(one) == self.nodes_of(other);
        for batches in batches.chunk_by(same_nodes) {
            match batches.first().map(|batch| self.nodes_of(batch)) {
                Some(Ok(nodes)) => reports.extend(self.find_all(&nodes, batches).await),
                Some(Err(error)) => reports.extend(batches.iter().map(|_| Err(error.clone()))),
                None => {}
            }
        }
        reports
    }

    /// The evidence about batches that are at these nodes.
    async fn find_all(
        &self,
        nodes: &[String],
        batches: &[UnresolvedBatch],
    ) -> Vec<BatchResult<EvidenceReport>> {
        let ids: Vec<String> = batches.iter().map(|batch| batch.batch_id.to_string()).collect();
        let looked: Vec<_> = batches.iter().zip(self.look(nodes, &ids).await).collect();
        let mut reports = Vec::with_capacity(batches.len());
        for some in looked.chunks(BATCHES_AT_ONCE) {
            let searches = some.iter().map(async |(batch, evidence)| {
                self.with_transactions(nodes, batch, evidence.clone()?).await
            });
            reports.extend(join_all(searches).await);
        }
        self.look_again(nodes, batches, &mut reports).await;
        reports
    }

    /// The evidence of all nodes about each of these batches. Each node is asked for all statuses at once.
    async fn look(&self, nodes: &[String], ids: &[String]) -> Vec<BatchResult<Evidence>> {
        let queries =
            nodes.iter().map(async |node| get_reports_by_id(node, &self.client, ids).await);
        let statuses = join_all(queries).await;
        let mut evidence = Vec::with_capacity(ids.len());
        for some in ids.chunks(BATCHES_AT_ONCE) {
            let looks =
                some.iter().map(async |id| self.evidence_of_all(nodes, &statuses, id).await);
            evidence.extend(join_all(looks).await);
        }
        evidence
    }

    /// The evidence of all nodes about a batch, from their statuses of several batches.
    async fn evidence_of_all(
        &self,
        nodes: &[String],
        statuses: &[BatchResult<ReportsById>],
        batch_id: &str,
    ) -> BatchResult<Evidence> {
        let looks = nodes.iter().zip(statuses).map(async |(node, reports)| {
            let evidence = match reports {
                Ok(reports) => self.evidence_of(node, batch_id, reports.get(batch_id)).await,
                Err(error) => Err(error.clone()),
            };
            evidence.map_err(|error| error.at(&origin(node)))
        });
        combine(join_all(looks).await)
    }

    async fn with_transactions(
        &self,
        nodes: &[String],
        batch: &UnresolvedBatch,
        evidence: Evidence,
    ) -> BatchResult<EvidenceReport> {
        if evidence == Evidence::Committed {
            return Ok(evidence.into());
        }
        let found = self.find_applied_transaction(nodes, batch).await?;
        Ok(found.unwrap_or_else(|| evidence.into()))
    }

    /// Replaces the reports about accepted batches that are absent after an outage. The nodes are asked a second time,
    /// because a node does not know a batch for a moment after it has accepted it.
    async fn look_again(
        &self,
        nodes: &[String],
        batches: &[UnresolvedBatch],
        reports: &mut [BatchResult<EvidenceReport>],
    ) {
        let absent = Ok(EvidenceReport::from(Evidence::Absent));
        let mut lost = Vec::new();
        for (batch, report) in batches.iter().zip(reports) {
            let was_accepted = matches!(batch.state, BatchState::Pending | BatchState::Valid);
            let id = batch.batch_id.to_string();
            let outage = self.client.outages().since_sent(&id);
            if was_accepted && *report == absent && outage != ObservedOutage::None {
                lost.push((report, id, outage));
            }
        }
        if lost.is_empty() {
            return;
        }
        sleep(self.options.lost_after).await;
        let ids: Vec<String> = lost.iter().map(|(_, id, _)| id.clone()).collect();
        for ((report, _, outage), again) in lost.into_iter().zip(self.look(nodes, &ids).await) {
            *report = again.map(|again| self.after_outage(nodes, outage, again));
        }
    }

    /// What the absence of an accepted batch proves.
    fn after_outage(
        &self,
        nodes: &[String],
        outage: ObservedOutage,
        again: Evidence,
    ) -> EvidenceReport {
        match outage {
            _ if again != Evidence::Absent => again.into(),
            ObservedOutage::None => Evidence::Absent.into(),
            ObservedOutage::Hung { node, lasted } => {
                let (node, seconds) = (origin(&node), lasted.as_secs());
                let detail = format!("{node} accepted requests and answered none for {seconds} s");
                EvidenceReport::with_detail(Evidence::StoppedNode, detail)
            }
            // A node that is not used at present may have it.
            ObservedOutage::Failed
                if self.record.as_ref().is_some_and(|record| !record.are_all(nodes)) =>
            {
                Evidence::Absent.into()
            }
            ObservedOutage::Failed => Evidence::Lost.into(),
        }
    }

    /// The evidence of one node.
    async fn evidence_at(&self, node: &str, batch_id: &str) -> BatchResult<Evidence> {
        let reports = get_reports_by_id(node, &self.client, &[batch_id.to_owned()]).await?;
        self.evidence_of(node, batch_id, reports.get(batch_id)).await
    }

    /// The evidence of one node that gave this report. The blocks are read after the status, so that a
    /// batch that is committed in between is found there.
    async fn evidence_of(
        &self,
        node: &str,
        batch_id: &str,
        report: Option<&StatusAtNode>,
    ) -> BatchResult<Evidence> {
        let Some(report) = report else {
            return Err(BatchError::InvalidAnswer(
                "statuses: the batch is missing in the response".to_owned(),
            ));
        };
        let status = if self.before_post.may_need_another_post(node, report) {
            // It does not show that the POST has arrived, and another POST does no harm.
            LedgerStatus::NotReported
        } else {
            report.report.status
        };
        Ok(match status {
            LedgerStatus::Committed => Evidence::Committed,
            LedgerStatus::Pending | LedgerStatus::Valid | LedgerStatus::Invalid => {
                Evidence::Present
            }
            LedgerStatus::NotReported
                if is_in_chain(&self.client, node, InChain::Batch, batch_id).await? =>
            {
                Evidence::Committed
            }
            LedgerStatus::NotReported => Evidence::Absent,
        })
    }

    /// Evidence from the batch's transactions: one of them was applied with another batch, or the batch was committed
    /// meanwhile.
    async fn find_applied_transaction(
        &self,
        nodes: &[String],
        batch: &UnresolvedBatch,
    ) -> BatchResult<Option<EvidenceReport>> {
        let Some(found) = self.applied.find(&self.client, nodes, batch).await else {
            return Ok(None);
        };
        // The batch is read after its transaction, because both may have been committed meanwhile. It may be in the
        // chain of any node.
        for node in nodes {
            let evidence = self.evidence_at(node, &batch.batch_id.to_string()).await;
            match evidence {
                Ok(Evidence::Committed) => return Ok(Some(Evidence::Committed.into())),
                Err(error) if *node == found.node => return Err(error.at(&origin(node))),
                _ => {}
            }
        }
        let is_lasting = self.applied.confirm(batch, found.transaction_id);
        Ok(is_lasting.then(|| found.never_applicable()))
    }
}

/// Combines the evidence of all nodes. One node is enough to prove presence, but absence needs all of them.
fn combine(results: Vec<BatchResult<Evidence>>) -> BatchResult<Evidence> {
    for evidence in [Evidence::Committed, Evidence::Present] {
        if results.contains(&Ok(evidence)) {
            return Ok(evidence);
        }
    }
    if results.iter().all(Result::is_ok) {
        return Ok(Evidence::Absent);
    }
    if results.contains(&Ok(Evidence::Absent)) {
        return Ok(Evidence::Inconclusive);
    }
    results.into_iter().next().unwrap_or(Ok(Evidence::Inconclusive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_needs_all_nodes_and_presence_only_one() {
        use Evidence::{Absent, Committed, Inconclusive, Present};
        let error = BatchError::Unavailable("a node is down".to_owned());
        let down = Err(error.clone());
        for (results, expected) in [
            (vec![Ok(Absent), Ok(Committed)], Ok(Committed)),
            (vec![Ok(Present), Ok(Committed)], Ok(Committed)),
            (vec![down.clone(), Ok(Committed)], Ok(Committed)),
            (vec![Ok(Absent), Ok(Present)], Ok(Present)),
            (vec![down.clone(), Ok(Present)], Ok(Present)),
            (vec![Ok(Absent), Ok(Absent)], Ok(Absent)),
            (vec![Ok(Absent), down.clone()], Ok(Inconclusive)),
            (vec![down.clone(), down], Err(error)),
        ] {
            assert_eq!(combine(results.clone()), expected, "{results:?}");
        }
    }
}
