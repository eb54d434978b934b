use std::{sync::Arc, time::Duration};

use grid_batch_core::ledger::{LedgerFacts, LedgerIdentity};
use grid_batch_core::{Clock, ScopeId, ServiceScopeId};
use grid_batch_http::origin;
use grid_batch_nodes::{NodePool, NodePoolOptions};
use grid_batch_settings::{ConfigError, NodeUrl, Setting, SettingValues, settings};

use super::Config;
use crate::StartError;

settings! {
    /// The ledger, and how requests to it are made.
    #[derive(Clone)]
    pub struct LedgerConfig in "ledger." {
        /// Kind of ledger.
        ///
        /// Set it before the first start: a database is bound to one ledger.
        pub kind: Option<String> = text("").equal().common(),
        /// Name of the ledger; a database keeps that of its first server and refuses servers with another, so that two
        /// ledgers are not confused. scabbard requires it.
        ///
        /// Set it for scabbard, whose nodes tell nothing that identifies the ledger, and keep it: another name is
        /// another ledger.
        pub name: String = text("").equal().common(),
        /// URLs of the ledger's nodes, each of one node; for scabbard the node of all services that have no
        /// services.*.node.
        ///
        /// List all nodes of a sawtooth or evm ledger, so that the failure of one stops nothing. Give each node its own
        /// URL, not that of a load balancer.
        pub urls: Vec<String> = list("").equal().with_secrets().common() => urls,
        /// Timeout for a request to a node, connecting included.
        ///
        /// Raise it if nodes answer slowly under load, or are far away. A batch whose request times out is in doubt
        /// until evidence is found. Other times follow from it: a connection may take 5/12 of it, sending a batch once
        /// 5/4, a shutdown 5/3, until evidence of absence is accepted 5/2, and a submission with all its attempts 5
        /// times as long.
        pub request_timeout: Duration = text("12s").equal().at_most(LONGEST_REQUEST),
        /// Maximum number of open sockets for the ledger's events; 0: the ledger is only polled.
        ///
        /// Raise it to the number of services that have batches at once. Each socket is a file descriptor here and a
        /// connection of the node. Set it to 0 only if a proxy does not let websockets through: without events a commit
        /// is noticed later, and a Scabbard batch that the nodes have forgotten needs a decision.
        pub event_sockets: usize = number("100").between(0, 100_000),
        /// How long a request that was not answered may still arrive at the ledger. A Scabbard batch or a Sawtooth
        /// list is not sent again before that, nor the batch when it was accepted and nothing explains why it is not
        /// applied; a batch that was sent again is not invalid before that.
        ///
        /// Set it above what every proxy between server and ledger keeps a request for. Too low a value may end a batch
        /// as invalid that is applied later, have Scabbard apply it twice, or reverse a list.
        pub late_arrival_limit: Duration = text("330s").equal(),
    }
}

/// Five times as long is the longest time that a submission may take.
const LONGEST_REQUEST: Duration = Duration::from_secs(45 * 60);

fn urls(values: &SettingValues, setting: &Setting) -> Result<Vec<String>, ConfigError> {
    let urls: Vec<NodeUrl> = values.get(setting)?;
    Ok(urls.into_iter().map(|NodeUrl(url)| url).collect())
}

impl LedgerConfig {
    /// Why a ledger whose nodes tell nothing that identifies it must have a name.
    pub const NAME_RULE: &str = "it is required, because nodes of this kind of ledger tell nothing that identifies it: \
         set a name of your own, such as name = \"production\" in the section [ledger], and keep it. A database \
         that was used without a name gets it by `grid-batch ledger adopt --reason TEXT`";
}

impl Config {
    /// What a ledger of the configured kind does with batches.
    pub fn facts(&self) -> Option<LedgerFacts> {
        self.ledger_type.map(|it| it.facts)
    }

    /// Whether batches wait for what others declare to read and write.
    pub(crate) fn uses_declared_access(&self) -> bool {
        self.facts().is_some_and(|facts| facts.allows_several_batches())
    }

    /// Which ledger the settings name, without what its nodes tell; `None` if its kind is not set.
    pub fn ledger_identity(&self) -> Option<LedgerIdentity> {
        let kind = self.ledger_type?.ledger.name;
        Some(LedgerIdentity { name: self.ledger.name.clone(), ..LedgerIdentity::new(kind) })
    }

    /// Whether the ledger must have a name and has none.
    pub fn lacks_ledger_name(&self) -> bool {
        self.facts().is_some_and(|facts| !facts.tells_identity) && self.ledger.name.is_empty()
    }

    /// All nodes.
    pub fn node_urls(&self) -> Vec<String> {
        let of_services = self.services.node.iter().map(|(_, url)| url.clone());
        let of_peers = self.services.peers.iter().map(|peer| peer.url.clone());
        let mut nodes: Vec<String> = Vec::new();
        for url in self.ledger.urls.iter().cloned().chain(of_services).chain(of_peers) {
            if !nodes.contains(&url) {
                nodes.push(url);
            }
        }
        nodes
    }

    /// The pool of all nodes, of which nothing is known yet.
    pub(super) fn node_pool(&self, clock: &Arc<dyn Clock>) -> NodePool {
        let of_service = |id: &ServiceScopeId, url: &String| (id.service_id().clone(), url.clone());
        NodePool::with_options(NodePoolOptions {
            urls: self.ledger.urls.clone(),
            // Where access is declared, all batches are of one service.
            spread: self.facts().is_none_or(|facts| !facts.enforces_declared_access),
            services: self.services.node.iter().map(|(id, url)| of_service(id, url)).collect(),
            peers: self
                .services
                .peers
                .iter()
                .map(|peer| of_service(&peer.service, &peer.url))
                .collect(),
            name: origin,
            clock: Arc::clone(clock),
        })
    }

    /// What all parts know of the nodes, of which there must be some.
    pub(crate) fn shared_nodes(&self) -> Result<NodePool, StartError> {
        if self.ledger.urls.is_empty() && self.services.node.is_empty() {
            return Err(StartError::Missing {
                name: LedgerConfig::urls.name,
                rule: "it must be the URLs of the ledger's nodes, such as [\"http://127.0.0.1:8008\"]",
            });
        }
        Ok(self.nodes.clone())
    }

    /// The node that batches of a service are sent to, if each service is at one node.
    pub(super) fn node_of(&self, service: &ServiceScopeId) -> Option<&String> {
        let own = self.services.node.iter().find(|(other, _)| other == service).map(|(_, url)| url);
        own.or_else(|| self.ledger.urls.first())
    }

    /// Why a kill of a node may need a person: it forgets what it has applied, and other nodes that know it are not
    /// configured.
    pub fn missing_peers(&self) -> Option<String> {
        self.facts()
            .filter(|facts| facts.one_node_for_service && !facts.statuses_survive_restart)?;
        let has_peers = |service: &ServiceScopeId| {
            self.services.peers.iter().any(|peer| peer.service == *service)
        };
        let without: Vec<String> = self
            .services
            .node
            .iter()
            .filter(|(service, _)| !has_peers(service))
            .map(|(service, _)| service.to_string())
            .collect();
        let missing = if self.services.peers.is_empty() {
            "services.*.peers is not set".to_owned()
        } else if !without.is_empty() {
            format!("services.*.peers has no node of {}", without.join(", "))
        } else {
            return None;
        };
        Some(format!(
            "{missing}: if the node of a service that has applied more than 63 transactions is killed, the batch \
             under way is held until an operator decides"
        ))
    }
}
