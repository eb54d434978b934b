use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::join_all;
use grid_batch_core::{GlobalScopeId, HeaderId, ScopeId, StatusUrlResolver};
use log::debug;

use crate::{
    before_post::BeforePost,
    nodes::{get_node_reports, nodes_of_batch, with_node},
    rest_client::RestClient,
};

/// Asks nodes about batches that will be sent soon, so that their sender need not.
///
/// It only saves time: the sender asks about a batch itself if an answer is missing or too old.
#[derive(Debug, Clone)]
pub struct SawtoothAskAhead {
    client: RestClient,
    resolver: Arc<dyn StatusUrlResolver>,
    before_post: Arc<BeforePost>,
}

impl SawtoothAskAhead {
    pub(crate) fn new(
        client: RestClient,
        resolver: Arc<dyn StatusUrlResolver>,
        before_post: Arc<BeforePost>,
    ) -> Self {
        Self { client, resolver, before_post }
    }

    /// Asks about these batches, and remembers the answers for their sender. Call it shortly before they
    /// are sent: an answer is used for two seconds.
    pub async fn ask_ahead(&self, batch_ids: &[HeaderId]) {
        let service_id = GlobalScopeId.service_id().as_str();
        let mut by_node: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for id in batch_ids.iter().map(ToString::to_string) {
            let nodes = nodes_of_batch(&*self.resolver, service_id, &id);
            for node in nodes.unwrap_or_default() {
                by_node.entry(node).or_default().push(id.clone());
            }
        }
        let questions = by_node.iter().map(async |(node, ids)| self.ask(node, ids).await);
        join_all(questions).await;
    }

    async fn ask(&self, node: &str, ids: &[String]) {
        let asked_at = self.before_post.now();
        match get_node_reports(node, &self.client, ids).await {
            Ok(reports) => {
                reports.iter().for_each(|r| self.before_post.set_ahead(node, r, asked_at));
            }
            Err(error) => {
                debug!(error:% = with_node(node, error); "cannot ask ahead about batches");
            }
        }
    }
}
