use futures_util::future::join_all;
use grid_batch_core::{InternalError, LedgerIdentity, RecordedLedger, ServiceScopeId};
use grid_batch_store::Store;
use grid_batch_support::redact_url;
use tokio::runtime::{Builder, Runtime};

use super::{
    StartError,
    ledger::{IdentityFn, identity_reader, service_reader},
};
use crate::Config;

/// The ledger of a database, and the ledgers of the configured nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerInspection {
    /// The ledger that the database is bound to, if it is bound.
    pub recorded: Option<RecordedLedger>,
    /// The nodes, in the order of the settings.
    pub nodes: Vec<ToldIdentity>,
}

/// What one node tells of its ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldIdentity {
    /// Its URL, without secrets.
    pub url: String,
    /// Its ledger, or why it does not tell.
    pub identity: Result<LedgerIdentity, String>,
}

/// Whether a node has a service that the settings say is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldService {
    /// The setting that says so.
    pub setting: &'static str,
    /// The service, by its id at the node.
    pub service: ServiceScopeId,
    /// The URL of the node, without secrets.
    pub url: String,
    /// Whether it has the service, or why it does not tell.
    pub answer: Result<bool, String>,
}

impl LedgerInspection {
    /// Reads the ledger from the store, and asks all configured nodes once.
    pub fn new(config: &Config, store: &Store) -> Result<Self, StartError> {
        let recorded = store.ledger().map_err(StartError::part)?;
        Ok(Self { recorded, nodes: Self::ask_nodes(config)? })
    }

    /// Asks all configured nodes once, which needs no database.
    pub fn ask_nodes(config: &Config) -> Result<Vec<ToldIdentity>, StartError> {
        let read = identity_reader(config)?;
        let configured = config.ledger.identity().ok_or_else(StartError::no_ledger_kind)?;
        let nodes = config.ledger.nodes();
        let asked = nodes.iter().map(|url| ask(&read, &configured, url));
        Ok(runtime()?.block_on(join_all(asked)))
    }

    /// Asks nodes once whether they have the services that the settings name: none on a ledger without services.
    pub fn ask_for_services(config: &Config) -> Result<Vec<ToldService>, StartError> {
        let Some(has_service) = &service_reader(config)? else { return Ok(Vec::new()) };
        let ledger = &config.ledger;
        let services = ledger.services.iter().map(|(id, url)| ("services.*.node", id, url));
        let peers = ledger.peers.iter().map(|peer| ("services.*.peers", &peer.peer, &peer.url));
        let asked = services.chain(peers).map(|(setting, service, url)| async move {
            let answer = has_service(url.clone(), service.clone()).await;
            let answer = answer.map_err(|error| error.to_string());
            ToldService { setting, service: service.clone(), url: redact_url(url), answer }
        });
        Ok(runtime()?.block_on(join_all(asked)))
    }

    /// The ledger of all nodes, if all have told and agree: what the node says that tells most.
    pub fn actual(&self) -> Option<&LedgerIdentity> {
        let told: Result<Vec<&LedgerIdentity>, _> =
            self.nodes.iter().map(|node| node.identity.as_ref()).collect();
        let told = told.ok()?;
        let most = told.iter().copied().max_by_key(|identity| identity.id.len())?;
        told.iter().all(|identity| identity.agrees_with(most)).then_some(most)
    }
}

fn runtime() -> Result<Runtime, StartError> {
    let failed = |error| InternalError::from_source("cannot start a runtime", error);
    Ok(Builder::new_current_thread().enable_all().build().map_err(failed)?)
}

async fn ask(read: &IdentityFn, configured: &LedgerIdentity, url: &str) -> ToldIdentity {
    let identity = match read(url.to_owned()).await {
        Ok(id) => Ok(LedgerIdentity { id, ..configured.clone() }),
        Err(error) => Err(error.to_string()),
    };
    ToldIdentity { url: redact_url(url), identity }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(identity: Result<&str, &str>) -> ToldIdentity {
        let identity = identity
            .map(|id| LedgerIdentity { id: id.to_owned(), ..LedgerIdentity::new("evm") })
            .map_err(str::to_owned);
        ToldIdentity { url: "http://h".to_owned(), identity }
    }

    #[test]
    fn all_nodes_must_tell_the_same() {
        let actual = |nodes: Vec<ToldIdentity>| {
            let inspection = LedgerInspection { recorded: None, nodes };
            inspection.actual().map(|identity| identity.id.clone())
        };
        assert_eq!(actual(vec![node(Ok("a")), node(Ok("a"))]).as_deref(), Some("a"));
        assert_eq!(actual(vec![node(Ok("a")), node(Ok("b"))]), None);
        assert_eq!(actual(vec![node(Ok("a")), node(Err("down"))]), None);
        assert_eq!(actual(Vec::new()), None);
        let less = vec![node(Ok("chain 1")), node(Ok("chain 1, genesis block 2"))];
        assert_eq!(actual(less).as_deref(), Some("chain 1, genesis block 2"));
    }
}
