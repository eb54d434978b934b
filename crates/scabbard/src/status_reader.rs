use std::collections::BTreeMap;

use grid_batch_core::batches::{LedgerStatus, StatusReport};
use grid_batch_core::polling::BatchStatus;
use grid_batch_core::{BatchError, BatchResult, ScopeId, ServiceScopeId};

use crate::{
    Scabbard,
    batch_history::StalledStatus,
    context::{parse_batch_id, parse_scope},
    observed_nodes::EventSource,
    status_query::may_ask_another,
    status_response::BatchReport,
};

/// The number of batches of a service that a node remembers.
pub(crate) const MAX_IDS_PER_REQUEST: usize = 100;

/// Reads the statuses of batches from Scabbard services.
///
/// The node that accepted a batch is queried first. If that node cannot be reached, does not have the service, or
/// reports an internal failure, the next one is queried.
impl Scabbard {
    pub(crate) async fn read_statuses(
        &self,
        service_id: &str,
        ids: &[String],
    ) -> BatchResult<Vec<StatusReport>> {
        let scope = parse_scope(service_id)?;
        let next = self.0.take_next_batches(&scope);
        let next_ids = next.iter().flat_map(|next| &next.ids).map(ToString::to_string);
        let next_ids: Vec<String> = next_ids.collect();
        let asked = ids.iter().chain(&next_ids).map(String::as_str);
        let mut reports = Vec::with_capacity(ids.len() + next_ids.len());
        for (nodes, ids) in self.group_by_nodes(&scope, asked)? {
            for ids in ids.chunks(MAX_IDS_PER_REQUEST) {
                let batches = self.query_nodes(&nodes, &scope, ids).await?;
                reports.extend(batches.into_iter().map(|batch| batch.report));
            }
        }
        if let Some(next) = next {
            self.0.record_next_batches(scope.service_id(), next, &reports);
            reports.retain(|report| ids.contains(&report.batch_id));
        }
        self.record_statuses(&scope, &reports);
        Ok(reports)
    }

    /// Groups the distinct ids by the list of nodes to query about them.
    fn group_by_nodes<'a>(
        &self,
        scope: &ServiceScopeId,
        ids: impl Iterator<Item = &'a str>,
    ) -> BatchResult<BTreeMap<Vec<String>, Vec<&'a str>>> {
        let mut ids: Vec<&str> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        let mut groups = BTreeMap::<_, Vec<&str>>::new();
        for id in ids {
            parse_batch_id(id)?;
            groups.entry(self.0.nodes_of_batch(scope, id)?).or_default().push(id);
        }
        Ok(groups)
    }

    /// The response of the first available node; if there is none, the first error.
    async fn query_nodes(
        &self,
        nodes: &[String],
        scope: &ServiceScopeId,
        ids: &[&str],
    ) -> BatchResult<Vec<BatchReport>> {
        let mut failure = None;
        for node in nodes {
            let asked_at = self.0.clock.monotonic();
            let result = self.0.query_statuses(node, scope, ids).await;
            self.0.record_answer(scope.service_id(), EventSource::Node, &result, asked_at);
            match result {
                Err(error) if may_ask_another(&error) => failure = failure.or(Some(error)),
                result => return result,
            }
        }
        Err(failure.unwrap_or_else(|| BatchError::Unavailable("no node was queried".to_owned())))
    }

    /// Records the statuses for the evidence reader. Unknown is not recorded, because it is only the status at one
    /// node.
    fn record_statuses(&self, scope: &ServiceScopeId, reports: &[StatusReport]) {
        self.0.next_batches.reported(scope.service_id(), reports);
        let now = self.0.clock.monotonic();
        if !self.0.peers_of(scope).is_empty() {
            let under_way = reports.iter().find(|report| !report.is_final());
            let batch = under_way.and_then(|report| report.batch_id.parse().ok());
            self.0.state_roots.record_under_way(scope.service_id(), batch, now);
        }
        for report in reports {
            let Ok(id) = report.batch_id.parse() else { continue };
            let batch = (scope.service_id().clone(), id);
            match report.status {
                LedgerStatus::NotReported => {}
                LedgerStatus::Valid => {
                    self.0.history.record_stall(&batch, StalledStatus::Valid, now);
                }
                _ => self.0.history.clear_stall(&batch),
            }
        }
    }
}
