//! Statuses of batches that are not stored here, from a node.

use axum::body::{Body, to_bytes};
use grid_batch_core::ledger::ForwardedRequest;
use serde_json::Value;

use super::Forwarding;

/// The most ids in one request: the longest line that Sawtooth reads has no place for more.
const IDS_PER_REQUEST: usize = 60;
/// The longest answer that is read.
const ANSWER_LIMIT: usize = 4 * 1024 * 1024;

/// What a node says about batches.
#[derive(Debug, Default)]
pub(crate) struct ForwardedStatuses {
    /// A report of each batch, in the form of the ledger. Empty if no node answers.
    pub(crate) reports: Vec<Value>,
    /// The node does not have the service.
    pub(crate) is_service_unknown: bool,
}

impl Forwarding {
    /// Asks a node at this path, with the ids in this parameter of the query.
    pub(crate) async fn statuses(
        &self,
        path: &str,
        parameter: &str,
        ids: &[String],
    ) -> ForwardedStatuses {
        let mut statuses = ForwardedStatuses::default();
        if !self.to.as_ref().is_some_and(|to| to.serves(false, path)) {
            return statuses;
        }
        for ids in ids.chunks(IDS_PER_REQUEST) {
            let query = format!("{parameter}={}", ids.join(","));
            let request = ForwardedRequest::get(path, Some(&query));
            let Ok(answer) = self.forward(request).await else { break };
            statuses.is_service_unknown |= answer.status == 404;
            let body = to_bytes(Body::from_stream(answer.body), ANSWER_LIMIT).await;
            let (200, Ok(body)) = (answer.status, body) else { break };
            match serde_json::from_slice(&body) {
                Ok(Value::Array(reports)) => statuses.reports.extend(reports),
                Ok(mut answer) => {
                    if let Some(Value::Array(reports)) = answer.get_mut("data").map(Value::take) {
                        statuses.reports.extend(reports);
                    }
                }
                Err(_) => break,
            }
        }
        statuses
    }
}
