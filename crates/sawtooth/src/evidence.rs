use std::{sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use grid_batch_core::{
    BatchError, BatchResult, BatchState, Evidence, EvidenceReader, EvidenceReport, LedgerStatus,
    StatusUrlResolver, UnresolvedBatch,
};
use grid_batch_http::origin;
use serde::Deserialize;
use tokio::time::sleep;

use crate::{
    api_error::{ApiError, successful_body},
    applied_transactions::AppliedTransactions,
    before_post::BeforePost,
    node_record::NodeRecord,
    nodes::{get_node_reports, nodes_of_batch, with_node},
    outages::Outage,
    rest_client::RestClient,
};

/// Looks for evidence at every node of a batch: in its status, in the blocks, and in what became of its
/// transactions.
#[derive(Debug, Clone)]
pub struct SawtoothEvidenceReader {
    client: RestClient,
    resolver: Arc<dyn StatusUrlResolver>,
    lost_after: Duration,
    /// `None` if the ledger has one node.
    record: Option<Arc<NodeRecord>>,
    before_post: Arc<BeforePost>,
    applied: Arc<AppliedTransactions>,
}

impl SawtoothEvidenceReader {
    pub(crate) fn new(
        client: RestClient,
        resolver: Arc<dyn StatusUrlResolver>,
        (before_post, applied): (Arc<BeforePost>, Arc<AppliedTransactions>),
        lost_after: Duration,
        record: Option<Arc<NodeRecord>>,
    ) -> Self {
        Self { client, resolver, lost_after, record, before_post, applied }
    }

    /// The evidence of all nodes.
    async fn evidence_of_all(&self, nodes: &[String], batch_id: &str) -> BatchResult<Evidence> {
        let queries = nodes.iter().map(async |node| {
            self.evidence_at(node, batch_id).await.map_err(|error| with_node(node, error))
        });
        combine(join_all(queries).await)
    }

    /// What the absence of a batch proves that a node had accepted. It is looked at a second time,
    /// because a node does not know a batch for a moment after it accepted it.
    async fn after_outage(&self, nodes: &[String], batch_id: &str) -> BatchResult<EvidenceReport> {
        let outage = self.client.outages().since_sent(batch_id);
        if outage == Outage::None {
            return Ok(Evidence::Absent.into());
        }
        sleep(self.lost_after).await;
        let again = self.evidence_of_all(nodes, batch_id).await?;
        Ok(match outage {
            _ if again != Evidence::Absent => again.into(),
            Outage::Silent { node, lasted } => {
                let (node, seconds) = (origin(&node), lasted.as_secs());
                let detail = format!("{node} accepted requests and answered none for {seconds} s");
                EvidenceReport::with_detail(Evidence::StoppedNode, detail)
            }
            // A node that is not used at present may have it.
            _ if self.record.as_ref().is_some_and(|record| !record.are_all(nodes)) => {
                Evidence::Absent.into()
            }
            _ => Evidence::Lost.into(),
        })
    }

    /// The evidence of one node. The blocks are read after the status, so that a batch that is
    /// committed in between is found there.
    async fn evidence_at(&self, node: &str, batch_id: &str) -> BatchResult<Evidence> {
        let reports = get_node_reports(node, &self.client, &[batch_id.to_owned()]).await?;
        let Some(report) = reports.into_iter().next() else {
            return Err(BatchError::InvalidAnswer(
                "statuses: the batch is missing in the response".to_owned(),
            ));
        };
        let status = match self.before_post.may_need_another_post(node, &report) {
            // It does not show that the POST has arrived, and another one does no harm.
            true => LedgerStatus::NotReported,
            false => report.report.status,
        };
        Ok(match status {
            LedgerStatus::Committed => Evidence::Committed,
            LedgerStatus::Pending | LedgerStatus::Valid | LedgerStatus::Invalid => {
                Evidence::Present
            }
            LedgerStatus::NotReported if self.is_in_block(node, batch_id).await? => {
                Evidence::Committed
            }
            LedgerStatus::NotReported => Evidence::Absent,
        })
    }

    /// Evidence from the batch's transactions: one that was applied with another batch, or that the batch
    /// was committed meanwhile.
    async fn find_applied_transaction(
        &self,
        nodes: &[String],
        batch: &UnresolvedBatch,
    ) -> BatchResult<Option<EvidenceReport>> {
        let Some(found) = self.applied.find(&self.client, nodes, batch).await else {
            return Ok(None);
        };
        // The batch is read after its transaction, which may have been committed with it meanwhile. It
        // may be in the chain of any node.
        for node in nodes {
            let evidence = self.evidence_at(node, &batch.batch_id.to_string()).await;
            match evidence {
                Ok(Evidence::Committed) => return Ok(Some(Evidence::Committed.into())),
                Err(error) if *node == found.node => return Err(with_node(node, error)),
                _ => {}
            }
        }
        let is_lasting = self.applied.confirm(batch, found.transaction_id);
        Ok(is_lasting.then(|| found.never_applicable()))
    }

    async fn is_in_block(&self, node: &str, batch_id: &str) -> BatchResult<bool> {
        let response = self.client.get(node, &format!("batches/{batch_id}")).await?;
        if response.status == 404
            && ApiError::from_response(&response)
                .is_some_and(|e| e.code == ApiError::BATCH_NOT_FOUND)
        {
            return Ok(false);
        }
        let body = successful_body(response)?;
        match serde_json::from_slice::<BatchResponse>(&body) {
            Ok(batch) if batch.data.header_signature == batch_id => Ok(true),
            _ => Err(BatchError::InvalidAnswer(
                "the response does not contain the requested batch".to_owned(),
            )),
        }
    }
}

#[derive(Deserialize)]
struct BatchResponse {
    data: Batch,
}

#[derive(Deserialize)]
struct Batch {
    header_signature: String,
}

impl EvidenceReader for SawtoothEvidenceReader {
    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
        Box::pin(async move {
            let batch_id = batch.batch_id.to_string();
            let nodes = nodes_of_batch(&*self.resolver, batch.service_id.as_str(), &batch_id)?;
            let evidence = self.evidence_of_all(&nodes, &batch_id).await?;
            if evidence == Evidence::Committed {
                return Ok(evidence.into());
            }
            if let Some(report) = self.find_applied_transaction(&nodes, batch).await? {
                return Ok(report);
            }
            let was_accepted = matches!(batch.state, BatchState::Pending | BatchState::Valid);
            if evidence == Evidence::Absent && was_accepted {
                return self.after_outage(&nodes, &batch_id).await;
            }
            Ok(evidence.into())
        })
    }
}

/// Combines the evidence of all nodes: one node proves presence, only all of them prove absence.
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
