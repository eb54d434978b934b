use std::collections::BTreeMap;

use futures_util::future::join_all;
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_http::origin;
use log::debug;

use crate::{
    Sawtooth,
    nodes::{get_node_reports, nodes_of_batch},
};

/// Asks nodes about batches that will be sent soon, so that their sender need not ask.
///
/// This only saves time. If an answer is missing or older than two seconds, the sender asks itself.
impl Sawtooth {
    pub(crate) async fn ask_before_turn(&self, service_id: &ServiceId, batch_ids: &[ItemId]) {
        let mut by_node: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for id in batch_ids.iter().map(ToString::to_string) {
            let nodes = nodes_of_batch(&*self.nodes, service_id.as_str(), &id);
            let nodes = nodes.unwrap_or_default().into_iter();
            for node in nodes.filter(|node| self.before_post.is_question_useful(node, &id)) {
                by_node.entry(node).or_default().push(id.clone());
            }
        }
        join_all(by_node.iter().map(|(node, ids)| self.remember_statuses(node, ids))).await;
    }

    async fn remember_statuses(&self, node: &str, ids: &[String]) {
        let asked_at = self.before_post.monotonic();
        match get_node_reports(node, &self.client, ids).await {
            Ok(reports) => {
                reports.iter().for_each(|r| self.before_post.set_ahead(node, r, asked_at));
            }
            Err(error) => {
                debug!(error:% = error.at(&origin(node)); "cannot ask ahead about batches");
            }
        }
    }
}
