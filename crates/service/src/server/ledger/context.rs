use std::sync::Arc;

use grid_batch_core::{Clock, StatusUrlResolver};
use grid_batch_http::HttpOptions;
use serde::de::DeserializeOwned;

use crate::{Config, ConfigError};

/// What an [`OpenLedgerFn`](crate::OpenLedgerFn) gets to make an adapter.
pub struct LedgerContext<'a> {
    pub(super) config: &'a Config,
    pub(super) nodes: Arc<dyn StatusUrlResolver>,
}

impl LedgerContext<'_> {
    /// The settings in the section `[ledger.NAME]` of the file, where `NAME` is what `ledger.kind` says. With
    /// `#[serde(deny_unknown_fields)]`, a misspelled setting is an error that names its line.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        self.config.ledger_settings()
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
    pub fn http(&self) -> &HttpOptions {
        &self.config.ledger.http
    }

    /// `poll.connections`: how many requests for statuses may be in flight.
    pub fn connections(&self) -> usize {
        self.config.poll.connections
    }

    /// The clock of the server.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.config.clock()
    }
}
