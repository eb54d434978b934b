use std::{collections::BTreeMap, sync::Arc};

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use grid_batch_core::{AskAhead, HeaderId, ServiceId, StatusUrlResolver};
use log::debug;

use crate::{
    before_post::BeforePost,
    nodes::{get_node_reports, nodes_of_batch, with_node},
    rest_client::RestClient,
};

/// Asks nodes about batches that will be sent soon, so that their sender need not.
///
/// It only saves time: the sender asks about a batch itself if an answer is missing or older than two
/// seconds.
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

    async fn ask(&self, node: &str, ids: &[String]) {
        let asked_at = self.before_post.monotonic();
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

impl AskAhead for SawtoothAskAhead {
    fn ask_ahead<'a>(
        &'a self,
        service_id: &'a ServiceId,
        batch_ids: &'a [HeaderId],
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut by_node: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for id in batch_ids.iter().map(ToString::to_string) {
                let nodes = nodes_of_batch(&*self.resolver, service_id.as_str(), &id);
                let nodes = nodes.unwrap_or_default().into_iter();
                for node in nodes.filter(|node| self.before_post.is_question_useful(node, &id)) {
                    by_node.entry(node).or_default().push(id.clone());
                }
            }
            join_all(by_node.iter().map(|(node, ids)| self.ask(node, ids))).await;
        })
    }
}
