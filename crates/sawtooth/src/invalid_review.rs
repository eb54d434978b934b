use futures_util::future::join_all;
use grid_batch_core::{BatchResult, LedgerStatus, StatusReport};
use grid_batch_http::origin;
use log::{debug, warn};

use crate::{
    before_post::BeforePost, node_record::NodeRecord, nodes::get_node_reports,
    rest_client::RestClient, statuses::NodeReport,
};

/// Decides whether an INVALID of one of several nodes is final.
///
/// A node that has not applied the batch before executes this one on an old state, and may find it
/// invalid although it is valid.
pub(crate) struct InvalidReview<'a> {
    pub(crate) client: &'a RestClient,
    pub(crate) record: &'a NodeRecord,
    pub(crate) before_post: &'a BeforePost,
    pub(crate) service_id: &'a str,
    /// The node that reported the batch.
    pub(crate) node: &'a str,
    /// The nodes of the ledger that are used at present.
    pub(crate) nodes: &'a [String],
}

impl InvalidReview<'_> {
    /// The report to use instead of this one, which says that a batch is invalid.
    pub(crate) async fn final_report(&self, invalid: StatusReport) -> StatusReport {
        let others = self.ask_others(&invalid.batch_id).await;
        let reports = || others.iter().flat_map(|(_, answer)| answer);
        let is_committed = |r: &&NodeReport| r.report.status == LedgerStatus::Committed;
        if let Some(committed) = reports().find(is_committed) {
            return committed.report.clone();
        }
        let Err(reason) = self.check(&invalid.batch_id, others).await else { return invalid };
        debug!(
            batch_id = invalid.batch_id.as_str(), node:% = origin(self.node), reason = reason.as_str();
            "a batch that a node reports as invalid is not final yet"
        );
        let batch_id = invalid.batch_id;
        StatusReport { batch_id, status: LedgerStatus::NotReported, receipts: Vec::new() }
    }

    /// The other nodes with their answers.
    async fn ask_others(&self, batch_id: &str) -> Vec<(&str, BatchResult<NodeReport>)> {
        let ids = [batch_id.to_owned()];
        let others = self.nodes.iter().filter(|node| *node != self.node);
        let queries = others.map(async |node| {
            let answer = get_node_reports(node, self.client, &ids).await;
            let first = answer.map(|reports| reports.into_iter().next()).transpose();
            first.map(|answer| (node.as_str(), answer))
        });
        join_all(queries).await.into_iter().flatten().collect()
    }

    /// Whether the node had applied the batch before when it found this one invalid. The error says
    /// why that is not certain.
    async fn check(
        &self,
        batch_id: &str,
        others: Vec<(&str, BatchResult<NodeReport>)>,
    ) -> Result<(), String> {
        if self.record.is_doubted(self.node, batch_id) {
            return Err("the node had not applied the batch before".to_owned());
        }
        if self.record.was_checked(self.node, batch_id) {
            return Ok(());
        }
        // Another process sent the batch, perhaps to another node.
        if !self.record.are_all(self.nodes) {
            return Err("another node of the ledger is not used at present".to_owned());
        }
        for (node, answer) in others {
            let other = answer.map_err(|error| format!("another node does not answer: {error}"))?;
            let has_executed = match other.report.status {
                LedgerStatus::NotReported => true,
                LedgerStatus::Invalid => !self.before_post.is_from_before(node, &other),
                _ => false,
            };
            if !has_executed {
                return Err("another node has not executed it yet".to_owned());
            }
        }
        self.check_before(batch_id).await
    }

    async fn check_before(&self, batch_id: &str) -> Result<(), String> {
        let before = self.record.committed_before(self.service_id, batch_id).await;
        let Some(before) = before.map_err(|error| error.to_string())? else { return Ok(()) };
        let applied = self.record.has_applied(self.client, self.node, &before).await;
        if applied.map_err(|error| error.to_string())? {
            return Ok(());
        }
        if self.record.set_doubted(self.node, batch_id) {
            warn!(
                batch_id, node:% = origin(self.node), before = before.as_str();
                "a node reports a batch as invalid and has not applied the batch before; its report \
                 does not count"
            );
        }
        Err(format!("the node has not applied the batch before, {before}"))
    }
}
