use std::{collections::BTreeMap, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    BatchError, BatchResult, BatchStatusReader, StatusReport, StatusUrlResolver,
};
use log::debug;

use crate::{
    caller::Caller,
    nodes::{at, nodes_of, statuses_at},
};

/// So many batches are asked for at once.
const IDS_PER_QUESTION: usize = 500;

/// Asks Sawtooth for the statuses of batches, without waiting for them to change.
///
/// A batch is asked for at the first of its nodes, and where that cannot be reached, at the next.
/// An answer that is wrong in one place is an error as a whole.
#[derive(Debug, Clone)]
pub struct SawtoothStatusReader {
    caller: Caller,
    resolver: Arc<dyn StatusUrlResolver>,
    connections: usize,
}

impl SawtoothStatusReader {
    pub(crate) fn new(
        caller: Caller,
        resolver: Arc<dyn StatusUrlResolver>,
        connections: usize,
    ) -> Self {
        Self { caller, resolver, connections }
    }

    /// The batches that are to be asked for at the same nodes in the same order.
    fn by_nodes(
        &self,
        service_id: &str,
        batch_ids: &[String],
    ) -> BatchResult<BTreeMap<Vec<String>, Vec<String>>> {
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for id in batch_ids {
            let nodes = nodes_of(&*self.resolver, service_id, id)?;
            groups.entry(nodes).or_default().push(id.clone());
        }
        Ok(groups)
    }

    /// The answer of the first node that can be reached.
    async fn ask(&self, nodes: &[String], ids: &[String]) -> BatchResult<Vec<StatusReport>> {
        let mut failed = None;
        for node in nodes {
            match statuses_at(node, &self.caller, ids).await.map_err(|error| at(node, error)) {
                Err(error @ BatchError::Unavailable(_)) => {
                    debug!(error:%; "a node cannot be asked for statuses");
                    failed = failed.or(Some(error));
                }
                answer => return answer,
            }
        }
        failed.map_or(Ok(Vec::new()), Err)
    }
}

impl BatchStatusReader for SawtoothStatusReader {
    type Status = StatusReport;

    fn get_batch_statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Box::pin(async move {
            let mut reports = Vec::with_capacity(batch_ids.len());
            for (nodes, ids) in self.by_nodes(service_id, batch_ids)? {
                for ids in ids.chunks(IDS_PER_QUESTION) {
                    reports.extend(self.ask(&nodes, ids).await?);
                }
            }
            Ok(reports)
        })
    }

    fn available_connections(&self) -> usize {
        self.connections
    }
}
