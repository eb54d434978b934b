//! Whom to ask, and what for.

use grid_batch_core::{BatchError, BatchResult, HeaderId, StatusReport, StatusUrlResolver};
use grid_batch_http::origin;

use crate::{api_error::result, caller::Caller, statuses::read_statuses};

/// As the REST API's documentation has it. From 64 ids on, the line of a GET is too long for it.
const IDS_PER_GET: usize = 15;

/// The statuses of these batches at one node.
pub(crate) async fn statuses_at(
    node: &str,
    caller: &Caller,
    ids: &[String],
) -> BatchResult<Vec<StatusReport>> {
    let answer = if ids.len() <= IDS_PER_GET {
        caller.get(node, &format!("batch_statuses?id={}", ids.join(","))).await?
    } else {
        let ids = serde_json::json!(ids).to_string();
        caller.post(node, "batch_statuses", "application/json", ids).await?
    };
    read_statuses(&result(answer)?, ids)
}

/// The nodes to ask for a batch, of which there is at least one.
pub(crate) fn nodes_of(
    resolver: &dyn StatusUrlResolver,
    service_id: &str,
    batch_id: &str,
) -> BatchResult<Vec<String>> {
    let internal = |why: String| BatchError::InternalError(why);
    // It becomes a part of an address.
    batch_id.parse::<HeaderId>().map_err(|error| internal(error.to_string()))?;
    let nodes = resolver.status_urls(service_id, batch_id);
    if nodes.is_empty() {
        return Err(internal(format!("no node of {service_id} is known that could be asked")));
    }
    Ok(nodes)
}

/// The error, with the node that it is about.
pub(crate) fn at(node: &str, error: BatchError) -> BatchError {
    let at = |text: String| format!("{}: {text}", origin(node));
    match error {
        BatchError::Unavailable(text) => BatchError::Unavailable(at(text)),
        BatchError::InvalidAnswer(text) => BatchError::InvalidAnswer(at(text)),
        BatchError::InternalError(text) => BatchError::InternalError(at(text)),
        other => other,
    }
}
