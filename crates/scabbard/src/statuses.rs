use std::{collections::BTreeMap, fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    BatchError, BatchResult, BatchStatusReader, LedgerStatus, ScopeId, ServiceScopeId, StatusReport,
};

use crate::{
    answer::Told,
    batches::Standstill,
    shared::{Shared, id_of, scope_of},
};

/// Asks Scabbard services for the statuses of batches.
///
/// The node that took a batch is asked first; the next one where it cannot be reached, does not
/// have the service, or is in trouble.
pub struct ScabbardStatusReader(pub(crate) Arc<Shared>);

impl ScabbardStatusReader {
    /// A node remembers so many batches of a service.
    const IDS_PER_QUESTION: usize = 100;

    async fn read(&self, service_id: &str, ids: &[String]) -> BatchResult<Vec<StatusReport>> {
        let scope = scope_of(service_id)?;
        let mut reports = Vec::with_capacity(ids.len());
        for (nodes, ids) in self.by_nodes(&scope, ids)? {
            for ids in ids.chunks(Self::IDS_PER_QUESTION) {
                let told = self.ask_in_turn(&nodes, &scope, ids).await?;
                reports.extend(told.into_iter().map(|told| told.report));
            }
        }
        self.note(&scope, &reports);
        Ok(reports)
    }

    /// The ids, each once, by the nodes that are to be asked for them.
    fn by_nodes<'a>(
        &self,
        scope: &ServiceScopeId,
        ids: &'a [String],
    ) -> BatchResult<BTreeMap<Vec<String>, Vec<&'a str>>> {
        let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut groups = BTreeMap::<_, Vec<&str>>::new();
        for id in ids {
            id_of(id)?;
            groups.entry(self.0.nodes_of(scope, id)?).or_default().push(id);
        }
        Ok(groups)
    }

    /// What the first node says that can be asked. The first error tells why, where there is none.
    async fn ask_in_turn(
        &self,
        nodes: &[String],
        scope: &ServiceScopeId,
        ids: &[&str],
    ) -> BatchResult<Vec<Told>> {
        let mut unavailable = None;
        for node in nodes {
            match self.0.ask(node, scope, ids).await {
                Err(error @ BatchError::Unavailable(_)) => drop(unavailable.get_or_insert(error)),
                told => return told,
            }
        }
        Err(unavailable.unwrap_or_else(|| BatchError::Unavailable("no node was asked".to_owned())))
    }

    /// Notes what evidence goes by. One node's Unknown says nothing of the others.
    fn note(&self, scope: &ServiceScopeId, reports: &[StatusReport]) {
        let now = self.0.clock.now();
        for report in reports {
            let Ok(id) = report.batch_id.parse() else { continue };
            let batch = (scope.service_id().clone(), id);
            match report.status {
                LedgerStatus::NotReported => {}
                LedgerStatus::Valid => drop(self.0.batches.stands(&batch, Standstill::Valid, now)),
                _ => self.0.batches.moves(&batch),
            }
        }
    }
}

impl BatchStatusReader for ScabbardStatusReader {
    type Status = StatusReport;

    fn get_batch_statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Box::pin(self.read(service_id, batch_ids))
    }

    fn available_connections(&self) -> usize {
        self.0.connections
    }
}

impl fmt::Debug for ScabbardStatusReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScabbardStatusReader").field("nodes", &self.0.nodes).finish_non_exhaustive()
    }
}
