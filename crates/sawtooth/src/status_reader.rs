use std::collections::BTreeMap;

use grid_batch_core::batches::{LedgerStatus, StatusReport};
use grid_batch_core::{BatchError, BatchResult, MonotonicTime};
use grid_batch_http::origin;
use log::debug;

use crate::{
    Sawtooth,
    invalid_review::InvalidReview,
    nodes::{get_node_reports, nodes_of_batch},
    statuses::StatusAtNode,
};

const MAX_IDS_PER_REQUEST: usize = 500;

/// Reads the statuses of batches from Sawtooth, without waiting for them to change.
///
/// The first node of a batch is queried; if it is unavailable, the next one is. A single invalid entry makes the whole
/// response an error. If the ledger has several nodes, the others are asked about a batch that one found invalid. An
/// INVALID from before the batch was posted is not reported.
impl Sawtooth {
    pub(crate) async fn read_statuses(
        &self,
        service_id: &str,
        batch_ids: &[String],
    ) -> BatchResult<Vec<StatusReport>> {
        let mut reports = Vec::with_capacity(batch_ids.len());
        for (nodes, ids) in self.group_by_nodes(service_id, batch_ids)? {
            for ids in ids.chunks(MAX_IDS_PER_REQUEST) {
                reports.extend(self.query_nodes(service_id, &nodes, ids).await?);
            }
        }
        Ok(reports)
    }

    /// Groups the batches by the list of nodes to query about them.
    fn group_by_nodes(
        &self,
        service_id: &str,
        batch_ids: &[String],
    ) -> BatchResult<BTreeMap<Vec<String>, Vec<String>>> {
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for id in batch_ids {
            let nodes = nodes_of_batch(&*self.nodes, service_id, id)?;
            groups.entry(nodes).or_default().push(id.clone());
        }
        Ok(groups)
    }

    /// The response of the first available node; if there is none, the first error.
    async fn query_nodes(
        &self,
        service_id: &str,
        nodes: &[String],
        ids: &[String],
    ) -> BatchResult<Vec<StatusReport>> {
        let mut failure = None;
        for node in nodes {
            let asked_at = self.client.outages().monotonic();
            match get_node_reports(node, &self.client, ids)
                .await
                .map_err(|error| error.at(&origin(node)))
            {
                Err(error @ BatchError::Unavailable(_)) => {
                    debug!(error:%; "cannot read statuses from this node");
                    failure = failure.or(Some(error));
                }
                Err(error) => return Err(error),
                Ok(reports) => {
                    self.remember_reported(node, &reports, asked_at);
                    return Ok(self.review(service_id, node, nodes, reports).await);
                }
            }
        }
        failure.map_or(Ok(Vec::new()), Err)
    }

    fn remember_reported(&self, node: &str, reports: &[StatusAtNode], asked_at: MonotonicTime) {
        let unfinished = [LedgerStatus::Pending, LedgerStatus::Valid];
        let reports = reports.iter().map(|report| &report.report);
        for report in reports.filter(|report| unfinished.contains(&report.status)) {
            self.client.outages().reported(node, &report.batch_id, asked_at);
        }
    }

    /// The reports of one node about the last POST of each batch, after asking the other nodes about invalid ones.
    async fn review(
        &self,
        service_id: &str,
        node: &str,
        nodes: &[String],
        reports: Vec<StatusAtNode>,
    ) -> Vec<StatusReport> {
        let before_post = &*self.before_post;
        let reports: Vec<StatusReport> =
            reports.into_iter().map(|report| before_post.review(node, report)).collect();
        let Some(record) = &self.record else { return reports };
        let with_status = |status| reports.iter().filter(move |report| report.status == status);
        with_status(LedgerStatus::Committed)
            .for_each(|it| record.set_committed(node, &it.batch_id));
        let client = &self.client;
        let review = InvalidReview { client, record, before_post, service_id, node, nodes };
        let invalid = with_status(LedgerStatus::Invalid).cloned().collect();
        let mut reviewed = review.final_reports(invalid).await;
        reports
            .into_iter()
            .map(|report| reviewed.remove(&report.batch_id).unwrap_or(report))
            .collect()
    }
}
