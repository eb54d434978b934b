//! What nodes report when operators ask.

use futures_util::future::join_all;
use grid_batch_core::{InternalError, ServiceScopeId};
use grid_batch_ledger_check::{LedgerInspection, NodeIdentity};
use grid_batch_store::Store;
use grid_batch_support::redact_url;
use tokio::runtime::{Builder, Runtime};

use super::{
    StartError,
    ledger::{identity_reader, service_reader},
};
use crate::{Config, ServicesConfig};

/// Whether a node has a service that the settings say is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeService {
    /// The setting that says so.
    pub setting: &'static str,
    /// The service, by its id at the node.
    pub service: ServiceScopeId,
    /// The URL of the node, without secrets.
    pub url: String,
    /// Whether it has the service, or why it does not answer.
    pub answer: Result<bool, String>,
}

/// Reads the ledger from the store, and asks all configured nodes once.
pub(super) fn inspect_ledger(
    config: &Config,
    store: &Store,
) -> Result<LedgerInspection, StartError> {
    let recorded = store.ledger().map_err(StartError::part)?;
    Ok(LedgerInspection { recorded, nodes: ask_nodes(config)? })
}

/// Asks all configured nodes once for their ledger, which needs no database.
pub fn ask_nodes(config: &Config) -> Result<Vec<NodeIdentity>, StartError> {
    let read = identity_reader(config)?;
    let configured = config.ledger_identity().ok_or_else(StartError::no_ledger_kind)?;
    let nodes = config.node_urls();
    let asked =
        nodes.iter().map(async |url| NodeIdentity::new(url, &configured, read(url.clone()).await));
    Ok(runtime()?.block_on(join_all(asked)))
}

/// Asks nodes once whether they have the services that the settings name: none on a ledger without services.
pub fn ask_for_services(config: &Config) -> Result<Vec<NodeService>, StartError> {
    let Some(has_service) = &service_reader(config)? else { return Ok(Vec::new()) };
    let ServicesConfig { node, peers, .. } = &config.services;
    let services = node.iter().map(|(id, url)| (ServicesConfig::node.name, id, url));
    let peers = peers.iter().map(|peer| (ServicesConfig::peers.name, &peer.peer, &peer.url));
    let asked = services.chain(peers).map(|(setting, service, url)| async move {
        let answer = has_service(url.clone(), service.clone()).await;
        let answer = answer.map_err(|error| error.to_string());
        NodeService { setting, service: service.clone(), url: redact_url(url), answer }
    });
    Ok(runtime()?.block_on(join_all(asked)))
}

fn runtime() -> Result<Runtime, StartError> {
    let failed = |error| InternalError::from_source("cannot start a runtime", error);
    Ok(Builder::new_current_thread().enable_all().build().map_err(failed)?)
}
