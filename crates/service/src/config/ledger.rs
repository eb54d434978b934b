use std::{fmt, sync::Arc, time::Duration};

use grid_batch_core::{Clock, LedgerFacts, LedgerIdentity, PeerService, ScopeId, ServiceScopeId};
use grid_batch_http::{HttpOptions, WebSocketOptions, origin};
use grid_batch_nodes::{NodePool, NodePoolOptions};
use grid_batch_poller::Backoff;
use grid_batch_settings::{ConfigError, NodeUrl, SettingValues, nodes_of_services, peers};
use grid_batch_support::redact_url;

use super::{ledger_type::ConfiguredType, times::Times};
use crate::StartError;

/// The ledger, and how requests to it are made.
#[derive(Clone)]
pub struct LedgerConfig {
    /// The kind of ledger, if it is set.
    pub kind: Option<&'static str>,
    /// What a ledger of this kind does with batches.
    pub facts: Option<LedgerFacts>,
    /// The name that the operator gave it; empty without one.
    pub name: String,
    /// The URLs of its nodes.
    pub urls: Vec<String>,
    /// Services on nodes of their own, with the nodes' URLs.
    pub services: Vec<(ServiceScopeId, String)>,
    /// Services at the other nodes of their circuits.
    pub peers: Vec<PeerService>,
    /// How requests are made.
    pub http: HttpOptions,
    /// How many event sockets may be open; 0 if events are not used.
    pub event_sockets: usize,
    /// How event sockets are used.
    pub socket: WebSocketOptions,
    /// The pauses before a broken event socket is opened again.
    pub reconnect_backoff: Backoff,
    /// How long a request may still arrive after the server gave it up.
    pub late_arrival_limit: Duration,
    /// How long a batch waits for a transaction that it depends on and that no batch has.
    pub dependency_limit: Duration,
}

impl LedgerConfig {
    /// Which ledger the settings name, without what its nodes tell; `None` if its kind is not set.
    pub fn identity(&self) -> Option<LedgerIdentity> {
        Some(LedgerIdentity { name: self.name.clone(), ..LedgerIdentity::new(self.kind?) })
    }

    /// Why a ledger whose nodes tell nothing that identifies it must have a name.
    pub const NAME_RULE: &str = "it is required, because nodes of this kind of ledger tell nothing that identifies it: \
         set a name of your own, such as name = \"production\" in the section [ledger], and keep it. A database \
         that was used without a name gets it by `grid-batch ledger adopt`";

    /// Whether the ledger must have a name and has none.
    pub fn lacks_name(&self) -> bool {
        self.facts.is_some_and(|facts| !facts.tells_identity) && self.name.is_empty()
    }

    /// All nodes.
    pub fn nodes(&self) -> Vec<String> {
        let of_services = self.services.iter().map(|(_, url)| url.clone());
        let of_peers = self.peers.iter().map(|peer| peer.url.clone());
        let mut nodes: Vec<String> = Vec::new();
        for url in self.urls.iter().cloned().chain(of_services).chain(of_peers) {
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
            urls: self.urls.clone(),
            // Where access is declared, all batches are of one service.
            spread: self.facts.is_none_or(|facts| !facts.enforces_declared_access),
            services: self.services.iter().map(|(id, url)| of_service(id, url)).collect(),
            peers: self.peers.iter().map(|peer| of_service(&peer.service, &peer.url)).collect(),
            name: origin,
            clock: Arc::clone(clock),
        })
    }

    /// What all parts know of the nodes, of which there must be some.
    pub(crate) fn shared_nodes(&self) -> Result<NodePool, StartError> {
        if self.urls.is_empty() && self.services.is_empty() {
            return Err(StartError::Missing {
                name: "ledger.urls",
                rule: "it must be the URLs of the ledger's nodes, such as [\"http://127.0.0.1:8008\"]",
            });
        }
        Ok(self.http.nodes.clone())
    }

    /// The node that batches of a service are sent to, if each service is at one node.
    pub(super) fn node_of(&self, service: &ServiceScopeId) -> Option<&String> {
        let own = self.services.iter().find(|(other, _)| other == service).map(|(_, url)| url);
        own.or_else(|| self.urls.first())
    }

    /// Why a kill of a node may need a person: it forgets what it has applied, and other nodes that know it are not
    /// configured.
    pub fn missing_peers(&self) -> Option<String> {
        self.facts.filter(|facts| facts.one_node_for_service && !facts.statuses_survive_restart)?;
        let has_peers =
            |service: &ServiceScopeId| self.peers.iter().any(|peer| peer.service == *service);
        let without: Vec<String> = self
            .services
            .iter()
            .filter(|(service, _)| !has_peers(service))
            .map(|(service, _)| service.to_string())
            .collect();
        let missing = if self.peers.is_empty() {
            "services.*.peers is not set".to_owned()
        } else if !without.is_empty() {
            format!("services.*.peers has no node of {}", without.join(", "))
        } else {
            return None;
        };
        Some(format!(
            "{missing}: after a kill of its node, the batch under way of a service with more than 63 \
             transactions is held until an operator decides"
        ))
    }

    pub(super) fn from_settings(
        settings: &SettingValues,
        ledger_type: Option<&ConfiguredType>,
        times: &Times,
    ) -> Result<Self, ConfigError> {
        let urls: Vec<NodeUrl> = settings.get("ledger.urls")?;
        Ok(Self {
            kind: ledger_type.map(|it| it.ledger.name),
            facts: ledger_type.map(|it| it.facts),
            name: settings.get("ledger.name")?,
            urls: urls.into_iter().map(|NodeUrl(url)| url).collect(),
            services: nodes_of_services(settings)?,
            peers: peers(settings)?,
            http: HttpOptions {
                connect_timeout: times.connect_timeout,
                request_timeout: times.request_timeout,
                ..HttpOptions::default()
            },
            event_sockets: settings.get::<u32>("ledger.event_sockets")? as usize,
            socket: WebSocketOptions {
                silence_timeout: settings.get("testing.silence_timeout")?,
                ..WebSocketOptions::default()
            },
            reconnect_backoff: Backoff {
                first: settings.get("testing.reconnect_first")?,
                longest: settings.get("testing.reconnect_longest")?,
            },
            late_arrival_limit: settings.get("ledger.late_arrival_limit")?,
            dependency_limit: settings.get("testing.dependency_limit")?,
        })
    }
}

/// The URLs may have passwords.
impl fmt::Debug for LedgerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.nodes().iter().map(|url| redact_url(url)).collect();
        f.debug_struct("LedgerConfig")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .field("nodes", &hosts)
            .finish_non_exhaustive()
    }
}
