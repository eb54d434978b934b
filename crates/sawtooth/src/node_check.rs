use grid_batch_core::ServiceId;
use grid_batch_core::ledger::Submission;
use grid_batch_http::origin;

use crate::Sawtooth;

/// Checks that a node has applied the batches before the one that is to be sent to it.
///
/// The store knows the last committed batch of each lane of the service. All of them must be committed at the node,
/// which is asked with one request about those that it has not just reported.
impl Sawtooth {
    pub(crate) async fn check_before(
        &self,
        node: &str,
        submission: &Submission<ServiceId>,
    ) -> Result<(), String> {
        let Some(record) = &self.record else { return Ok(()) };
        let service_id = submission.scope_id().as_str();
        let batch_id = submission.batch_header();
        let before = record.committed_before(service_id, batch_id).await;
        let before = before.map_err(|error| {
            format!("cannot read which batches were committed before this one: {error}")
        })?;
        let ids: Vec<String> =
            before.before.iter().chain(&before.since).map(ToString::to_string).collect();
        match record.first_missing(&self.client, node, &ids).await {
            Ok(None) => {}
            Ok(Some(before)) => {
                return Err(format!(
                    "the node {} does not report an earlier batch, {before}, as committed; this one \
                     waits until a node does",
                    origin(node)
                ));
            }
            Err(error) => {
                let node = origin(node);
                return Err(format!(
                    "cannot ask the node {node} whether it has applied the earlier batches: {error}"
                ));
            }
        }
        record.set_checked(node, batch_id);
        Ok(())
    }
}
