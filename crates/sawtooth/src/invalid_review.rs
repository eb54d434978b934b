use std::collections::HashMap;

use futures_util::future::join_all;
use grid_batch_core::batches::{LedgerStatus, StatusReport};
use grid_batch_core::{BatchResult, ItemId};
use grid_batch_http::origin;
use log::{debug, warn};

use crate::{
    before_post::BeforePost,
    node_record::NodeRecord,
    nodes::{ReportsById, get_reports_by_id},
    rest_client::RestClient,
};

/// Decides whether INVALID reports of one of several nodes are final.
///
/// A node that has not applied the earlier batches executes a batch on an old state, and may find it invalid although
/// it is valid.
pub(crate) struct InvalidReview<'a> {
    pub(crate) client: &'a RestClient,
    pub(crate) record: &'a NodeRecord,
    pub(crate) before_post: &'a BeforePost,
    pub(crate) service_id: &'a str,
    /// The node that reported the batches.
    pub(crate) node: &'a str,
    /// The nodes of the ledger that are used at present.
    pub(crate) nodes: &'a [String],
}

/// Another node with its answer.
type OtherNode<'a> = (&'a str, BatchResult<ReportsById>);

impl InvalidReview<'_> {
    /// Takes reports of invalid batches, and returns the reports to use instead. Each other node is asked about all of
    /// the batches with one request.
    pub(crate) async fn final_reports(
        &self,
        invalid: Vec<StatusReport>,
    ) -> HashMap<String, StatusReport> {
        let ids: Vec<String> = invalid.iter().map(|report| report.batch_id.clone()).collect();
        let others = if ids.is_empty() { Vec::new() } else { self.ask_others(&ids).await };
        let mut reports = HashMap::new();
        for report in invalid {
            let id = report.batch_id.clone();
            reports.insert(id, self.final_report(report, &others).await);
        }
        reports
    }

    async fn final_report(&self, invalid: StatusReport, others: &[OtherNode<'_>]) -> StatusReport {
        let answers = others.iter().filter_map(|(_, answer)| answer.as_ref().ok());
        let mut reports = answers.filter_map(|answer| answer.get(&invalid.batch_id));
        if let Some(committed) =
            reports.find(|report| report.report.status == LedgerStatus::Committed)
        {
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
    async fn ask_others(&self, batch_ids: &[String]) -> Vec<OtherNode<'_>> {
        let others = self.nodes.iter().filter(|node| *node != self.node);
        let queries = others.map(async |node| {
            (node.as_str(), get_reports_by_id(node, self.client, batch_ids).await)
        });
        join_all(queries).await
    }

    /// Checks that the node had applied the earlier batches when it found this one invalid. The error says why this is
    /// not certain.
    async fn check(&self, batch_id: &str, others: &[OtherNode<'_>]) -> Result<(), String> {
        if self.record.is_doubted(self.node, batch_id) {
            return Err("the node had not applied the earlier batches".to_owned());
        }
        if self.record.was_checked(self.node, batch_id) {
            return Ok(());
        }
        // Another process sent the batch, possibly to another node.
        if !self.record.are_all(self.nodes) {
            return Err("another node of the ledger is not used at present".to_owned());
        }
        for (node, answer) in others {
            let reports = answer
                .as_ref()
                .map_err(|error| format!("another node does not answer: {error}"))?;
            let has_executed =
                reports.get(batch_id).is_some_and(|other| match other.report.status {
                    LedgerStatus::NotReported => true,
                    LedgerStatus::Invalid => !self.before_post.is_from_before(node, other),
                    _ => false,
                });
            if !has_executed {
                return Err("another node has not executed it yet".to_owned());
            }
        }
        self.check_before(batch_id).await
    }

    async fn check_before(&self, batch_id: &str) -> Result<(), String> {
        let history = self.record.committed_before(self.service_id, batch_id).await;
        let history = history.map_err(|error| error.to_string())?;
        if let Some(before) = self.first_missing(&history.before).await? {
            if self.record.set_doubted(self.node, batch_id) {
                warn!(
                    batch_id, node:% = origin(self.node), before = before.as_str();
                    "a node reports a batch as invalid and has not applied the batches before; its \
                     report does not count"
                );
            }
            return Err(format!("the node has not applied an earlier batch, {before}"));
        }
        match self.first_missing(&history.since).await? {
            Some(later) => Err(format!("the node has not applied a later batch yet, {later}")),
            None => Ok(()),
        }
    }

    /// The first of these batches that the node has not applied.
    async fn first_missing(&self, batch_ids: &[ItemId]) -> Result<Option<String>, String> {
        let ids: Vec<String> = batch_ids.iter().map(ToString::to_string).collect();
        let missing = self.record.first_missing(self.client, self.node, &ids).await;
        missing.map_err(|error| error.to_string())
    }
}
