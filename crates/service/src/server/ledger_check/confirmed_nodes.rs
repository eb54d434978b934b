use std::sync::Arc;

use grid_batch_core::StatusUrlResolver;

use super::LedgerCheck;

/// Resolves only nodes that have confirmed their ledger.
#[derive(Debug)]
pub(in crate::server) struct ConfirmedNodes {
    nodes: Arc<dyn StatusUrlResolver>,
    check: LedgerCheck,
}

impl ConfirmedNodes {
    pub(in crate::server) fn new(nodes: Arc<dyn StatusUrlResolver>, check: LedgerCheck) -> Self {
        Self { nodes, check }
    }
}

impl StatusUrlResolver for ConfirmedNodes {
    fn status_urls(&self, service_id: &str, batch_id: &str) -> Vec<String> {
        let mut urls = self.nodes.status_urls(service_id, batch_id);
        urls.retain(|url| self.check.is_confirmed(url));
        urls
    }
}
