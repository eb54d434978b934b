use futures_util::future::join_all;
use grid_batch_core::{BatchResult, LedgerStatus, StatusReport};
use grid_batch_http::origin;
use log::{debug, warn};

use crate::{node_record::NodeRecord, nodes::get_statuses, rest_client::RestClient};

/// Decides whether an INVALID of one of several nodes is final.
///
/// A node that has not applied the batch before executes this one on an old state, and may find it
/// invalid although it is valid.
pub(crate) struct InvalidReview<'a> {
    pub(crate) client: &'a RestClient,
    pub(crate) record: &'a NodeRecord,
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
        let is_committed = |report: &&StatusReport| report.status == LedgerStatus::Committed;
        if let Some(committed) = others.iter().flatten().find(is_committed) {
            return committed.clone();
        }
        let Err(reason) = self.check(&invalid.batch_id, &others).await else { return invalid };
        debug!(
            batch_id = invalid.batch_id.as_str(), node:% = origin(self.node), reason = reason.as_str();
            "a batch that a node reports as invalid is not final yet"
        );
        let batch_id = invalid.batch_id;
        StatusReport { batch_id, status: LedgerStatus::NotReported, receipts: Vec::new() }
    }

    async fn ask_others(&self, batch_id: &str) -> Vec<BatchResult<StatusReport>> {
        let ids = [batch_id.to_owned()];
        let others = self.nodes.iter().filter(|node| *node != self.node);
        let queries = others.map(async |node| get_statuses(node, self.client, &ids).await);
        let first = |answer: BatchResult<Vec<StatusReport>>| {
            answer.map(|reports| reports.into_iter().next()).transpose()
        };
        join_all(queries).await.into_iter().filter_map(first).collect()
    }

    /// Whether the node had applied the batch before when it found this one invalid. The error says
    /// why that is not certain.
    async fn check(
        &self,
        batch_id: &str,
        others: &[BatchResult<StatusReport>],
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
        for other in others {
            match other {
                Err(error) => return Err(format!("another node does not answer: {error}")),
                Ok(report)
                    if report.status != LedgerStatus::NotReported
                        && report.status != LedgerStatus::Invalid =>
                {
                    return Err("another node has not executed it yet".to_owned());
                }
                Ok(_) => {}
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
