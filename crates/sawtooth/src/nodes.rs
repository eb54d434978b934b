//! The nodes of a batch, and status requests to one node.

use std::collections::HashMap;

use grid_batch_core::{BatchError, BatchResult};
use grid_batch_nodes::StatusUrlResolver;

use crate::{
    api_error::error_message,
    rest_client::RestClient,
    statuses::{StatusAtNode, parse_statuses},
};

/// The limit in the REST API's documentation. With 64 ids or more, the URL is too long for it.
const IDS_PER_GET: usize = 15;

/// Requests the statuses of these batches from one node.
pub(crate) async fn get_node_reports(
    node: &str,
    client: &RestClient,
    ids: &[String],
) -> BatchResult<Vec<StatusAtNode>> {
    let response = if ids.len() <= IDS_PER_GET {
        client.get(node, &format!("batch_statuses?id={}", ids.join(","))).await?
    } else {
        let ids = serde_json::json!(ids).to_string();
        client.post(node, "batch_statuses", "application/json", ids).await?
    };
    parse_statuses(&response.successful_body(error_message)?, ids)
}

/// The reports of one node by the id of their batch.
pub(crate) type ReportsById = HashMap<String, StatusAtNode>;

/// The same, by the id of the batch.
pub(crate) async fn get_reports_by_id(
    node: &str,
    client: &RestClient,
    ids: &[String],
) -> BatchResult<ReportsById> {
    let reports = get_node_reports(node, client, ids).await?;
    Ok(reports.into_iter().map(|report| (report.report.batch_id.clone(), report)).collect())
}

/// The nodes to query about a batch: at least one.
pub(crate) fn nodes_of_batch(
    resolver: &dyn StatusUrlResolver,
    service_id: &str,
    batch_id: &str,
) -> BatchResult<Vec<String>> {
    // The id becomes a part of a URL.
    batch_id
        .parse::<grid_batch_protocol::HeaderId>()
        .map_err(|error| BatchError::InternalError(error.to_string()))?;
    let nodes = resolver.status_urls(service_id, batch_id);
    if nodes.is_empty() {
        let reason = format!("no node is configured for service {service_id}");
        return Err(BatchError::InternalError(reason));
    }
    Ok(nodes)
}
