use std::sync::Arc;

use futures_core::future::BoxFuture;
use grid_batch_core::{GlobalScopeId, NodeCheck, ScopeId, Submission};
use grid_batch_http::origin;

use crate::{node_record::NodeRecord, rest_client::RestClient};

/// Checks that a node has applied the batches before the one that is sent to it.
///
/// The store knows the last batch that was committed in each lane of the service; all of them must be
/// committed at the node. It is asked with one request, about those that it has not just reported.
#[derive(Debug, Clone)]
pub struct SawtoothNodeCheck {
    client: RestClient,
    record: Arc<NodeRecord>,
}

impl SawtoothNodeCheck {
    pub(crate) fn new(client: RestClient, record: Arc<NodeRecord>) -> Self {
        Self { client, record }
    }

    async fn check_before(
        &self,
        node: &str,
        submission: &Submission<GlobalScopeId>,
    ) -> Result<(), String> {
        let service_id = submission.scope_id().service_id().as_str();
        let batch_id = submission.batch_header();
        let before = self.record.committed_before(service_id, batch_id).await;
        let before = before.map_err(|error| {
            format!("cannot read which batches were committed before this one: {error}")
        })?;
        let ids: Vec<String> =
            before.before.iter().chain(&before.since).map(ToString::to_string).collect();
        match self.record.first_missing(&self.client, node, &ids).await {
            Ok(None) => {}
            Ok(Some(before)) => {
                return Err(format!(
                    "the node {} does not report a batch before, {before}, as committed; this one \
                     waits until a node does",
                    origin(node)
                ));
            }
            Err(error) => {
                let node = origin(node);
                return Err(format!(
                    "cannot ask the node {node} whether it has applied the batches before: {error}"
                ));
            }
        }
        self.record.set_checked(node, batch_id);
        Ok(())
    }
}

impl NodeCheck for SawtoothNodeCheck {
    type Id = GlobalScopeId;

    fn check<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<GlobalScopeId>,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.check_before(url, submission))
    }
}
