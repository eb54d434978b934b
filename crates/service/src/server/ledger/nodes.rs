use std::sync::Arc;

use grid_batch_core::{Admission, ScopeId, ServiceId, StatusUrlResolver};
use grid_batch_queuer::WakeUp;
use grid_batch_submitter::{
    FixedUrlResolver, NodeChoice, NodeLimits, NodeUrlResolver, PerServiceUrlResolver,
    SubmitterBuilder,
};

use super::super::ledger_check::{ConfirmedNodes, LedgerCheck};
use crate::{LedgerConfig, StartError};

/// The URLs of a ledger's nodes.
pub(in crate::server) enum LedgerNodes {
    /// One node.
    Single(Arc<FixedUrlResolver<ServiceId>>),
    /// Several nodes of one ledger.
    Cluster(Arc<NodeUrlResolver<ServiceId>>),
    /// Some services have a node of their own.
    PerService(Arc<PerServiceUrlResolver<ServiceId>>),
}

/// The same nodes for every service.
#[derive(Debug)]
pub(super) struct AllNodes(pub(super) Vec<String>);

impl StatusUrlResolver for AllNodes {
    fn status_urls(&self, _service_id: &str, _batch_id: &str) -> Vec<String> {
        self.0.clone()
    }
}

impl LedgerNodes {
    pub(super) fn new(config: &LedgerConfig, choice: NodeChoice) -> Result<Self, StartError> {
        let services = config.services.iter();
        let services: Vec<(ServiceId, String)> =
            services.map(|(scope, url)| (scope.service_id().clone(), url.clone())).collect();
        match (&config.urls[..], services.is_empty()) {
            ([], true) => Err(StartError::Missing {
                name: "ledger.urls",
                rule: "it must be the URLs of the ledger's nodes, such as [\"http://127.0.0.1:8008\"]",
            }),
            ([url], true) => Ok(Self::Single(Arc::new(FixedUrlResolver::new(url.clone())))),
            (urls, true) => {
                let resolver = NodeUrlResolver::new(urls.iter().cloned());
                let resolver = resolver.map_err(StartError::part)?.with_choice(choice);
                Ok(Self::Cluster(Arc::new(resolver)))
            }
            (urls, false) => {
                let resolver = PerServiceUrlResolver::new(services);
                let resolver = match urls {
                    [] => resolver,
                    [url, ..] => resolver.with_default(url.clone()),
                };
                Ok(Self::PerService(Arc::new(resolver)))
            }
        }
    }

    /// The nodes to ask for a batch's status, of those that have confirmed their ledger.
    pub(super) fn confirmed_resolver(&self, check: &LedgerCheck) -> Arc<dyn StatusUrlResolver> {
        Arc::new(ConfirmedNodes::new(self.status_resolver(), check.clone()))
    }

    /// Whether the ledger has several nodes that apply the same batches.
    pub(super) fn are_several(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// The nodes to ask for a batch's status.
    pub(in crate::server) fn status_resolver(&self) -> Arc<dyn StatusUrlResolver> {
        match self {
            Self::Single(resolver) => Arc::<FixedUrlResolver<ServiceId>>::clone(resolver),
            Self::Cluster(resolver) => Arc::<NodeUrlResolver<ServiceId>>::clone(resolver),
            Self::PerService(resolver) => Arc::<PerServiceUrlResolver<ServiceId>>::clone(resolver),
        }
    }

    /// Shares the places of a submitter among the nodes, if services have nodes of their own. `wake_up` is
    /// that of the queue.
    pub(in crate::server) fn limits(
        &self,
        places: u32,
        node_limit: usize,
        wake_up: &WakeUp,
    ) -> Option<Arc<dyn Admission>> {
        let Self::PerService(resolver) = self else { return None };
        let resolver = Arc::<PerServiceUrlResolver<ServiceId>>::clone(resolver);
        let places = usize::try_from(places).unwrap_or(usize::MAX);
        let wake_up = wake_up.clone();
        let wake = move |service| wake_up.wake(service);
        Some(Arc::new(NodeLimits::new(resolver, places, node_limit, wake)))
    }

    /// Makes a submitter send to these nodes.
    pub(in crate::server) fn set_resolver(
        &self,
        submitter: SubmitterBuilder<ServiceId>,
    ) -> SubmitterBuilder<ServiceId> {
        match self {
            Self::Single(resolver) => {
                submitter.with_url_resolver(Arc::<FixedUrlResolver<ServiceId>>::clone(resolver))
            }
            Self::Cluster(resolver) => submitter.with_nodes(Arc::clone(resolver)),
            Self::PerService(resolver) => {
                submitter
                    .with_url_resolver(Arc::<PerServiceUrlResolver<ServiceId>>::clone(resolver))
            }
        }
    }
}
