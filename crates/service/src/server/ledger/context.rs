use std::sync::Arc;

use grid_batch_core::Clock;
use grid_batch_http::HttpOptions;
use grid_batch_nodes::StatusUrlResolver;
use grid_batch_settings::SettingValues;

use crate::{Config, PollConfig};

/// What an [`OpenLedgerFn`](crate::OpenLedgerFn) gets to make an adapter.
pub struct LedgerContext<'a> {
    pub(super) config: &'a Config,
    pub(super) nodes: Arc<dyn StatusUrlResolver>,
}

impl LedgerContext<'_> {
    /// The value of each setting, also of those that the ledger has declared by
    /// [`LedgerType::with_settings`](crate::LedgerType::with_settings).
    pub fn settings(&self) -> &SettingValues {
        &self.config.settings
    }

    /// `ledger.urls`.
    pub fn urls(&self) -> &[String] {
        &self.config.ledger.urls
    }

    /// The nodes to ask about a batch, the best first. In a running server these are the nodes that have confirmed their
    /// ledger; a command that only asks which ledger nodes belong to gets all configured nodes.
    pub fn nodes(&self) -> Arc<dyn StatusUrlResolver> {
        Arc::clone(&self.nodes)
    }

    /// Timeouts and limits of requests to nodes.
    pub fn http(&self) -> HttpOptions {
        self.config.http_options()
    }

    /// How many requests for statuses may be in flight.
    pub fn connections(&self) -> usize {
        PollConfig::CONNECTIONS
    }

    /// The clock of the server.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.config.clock()
    }
}
