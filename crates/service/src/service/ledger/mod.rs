//! The ledger that is configured: its adapter, and where its nodes are.

#[cfg(feature = "evm")]
mod evm;
mod secret;

use std::{path::Path, sync::Arc};

use crate::{LedgerConfig, PollConfig, StartError};
use grid_batch_core::{
    BatchStatusReader, EvidenceReader, GlobalScopeId, LedgerEvents, ScopeId, ServiceScopeId,
    StatusReport, StatusUrlResolver, SubmissionSender,
};
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_sawtooth::{Sawtooth, SawtoothOptions};
use grid_batch_scabbard::{Scabbard, ScabbardOptions};
use grid_batch_submitter::{
    FixedUrlResolver, NodeUrlResolver, PerServiceUrlResolver, SubmitterBuilder,
};
use grid_batch_withdrawals::WithdrawalRules;

#[cfg(feature = "evm")]
pub(super) use evm::evm;

/// A ledger, as the parts of the service need it.
pub(super) struct Ledger<S: ScopeId> {
    pub(super) sender: Arc<dyn SubmissionSender<Id = S>>,
    pub(super) reader: Arc<dyn BatchStatusReader<Status = StatusReport> + Sync>,
    pub(super) evidence: Arc<dyn EvidenceReader + Sync>,
    /// What it says by itself, where it says anything.
    pub(super) events: Option<Arc<dyn LedgerEvents>>,
    pub(super) nodes: Nodes<S>,
    /// Where it has pools: what may be asked of them. It takes no batches of others then.
    pub(super) withdrawals: Option<Arc<dyn WithdrawalRules>>,
}

/// Where the ledger's nodes are.
pub(super) enum Nodes<S: ScopeId> {
    /// One node for everything.
    One(Arc<FixedUrlResolver<S>>),
    /// Several nodes of one ledger.
    Several(Arc<NodeUrlResolver<S>>),
    /// Services that are elsewhere.
    PerService(Arc<PerServiceUrlResolver<S>>),
}

impl<S: ScopeId> Nodes<S> {
    fn new(config: &LedgerConfig, services: Vec<(S, String)>) -> Result<Self, StartError> {
        let missing = StartError::Missing {
            name: "ledger.urls",
            rule: "it must be the addresses of the ledger's nodes, such as [\"http://127.0.0.1:8008\"]",
        };
        match (&config.urls[..], services.is_empty()) {
            ([], true) => Err(missing),
            ([url], true) => Ok(Self::One(Arc::new(FixedUrlResolver::new(url.clone())))),
            (urls, true) => {
                let nodes = NodeUrlResolver::new(urls.iter().cloned());
                Ok(Self::Several(Arc::new(nodes.map_err(StartError::part)?)))
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

    /// Whom to ask for a batch's status.
    fn for_statuses(&self) -> Arc<dyn StatusUrlResolver> {
        match self {
            Self::One(resolver) => Arc::<FixedUrlResolver<S>>::clone(resolver),
            Self::Several(resolver) => Arc::<NodeUrlResolver<S>>::clone(resolver),
            Self::PerService(resolver) => Arc::<PerServiceUrlResolver<S>>::clone(resolver),
        }
    }

    /// A submitter that sends to them.
    pub(super) fn given_to(&self, submitter: SubmitterBuilder<S>) -> SubmitterBuilder<S> {
        match self {
            Self::One(resolver) => {
                submitter.with_url_resolver(Arc::<FixedUrlResolver<S>>::clone(resolver))
            }
            Self::Several(resolver) => submitter.with_nodes(Arc::clone(resolver)),
            Self::PerService(resolver) => {
                submitter.with_url_resolver(Arc::<PerServiceUrlResolver<S>>::clone(resolver))
            }
        }
    }
}

pub(super) fn sawtooth(
    config: &LedgerConfig,
    poll: &PollConfig,
) -> Result<Ledger<GlobalScopeId>, StartError> {
    let nodes = Nodes::new(config, Vec::new())?;
    let options = SawtoothOptions {
        http: config.http.clone(),
        websocket: config.socket.clone(),
        connections: poll.connections,
        ..SawtoothOptions::default()
    };
    let sawtooth = Sawtooth::new(options)?;
    Ok(Ledger {
        sender: Arc::new(sawtooth.sender()),
        reader: Arc::new(sawtooth.status_reader(nodes.for_statuses())),
        evidence: Arc::new(sawtooth.evidence_reader(nodes.for_statuses())),
        events: Some(Arc::new(sawtooth.events(config.urls.iter().cloned()))),
        nodes,
        withdrawals: None,
    })
}

pub(super) fn scabbard(
    config: &LedgerConfig,
    poll: &PollConfig,
) -> Result<Ledger<ServiceScopeId>, StartError> {
    let nodes = Nodes::new(config, config.services.clone())?;
    let options = ScabbardOptions {
        http: config.http.clone(),
        websocket: config.socket.clone(),
        connections: poll.connections,
        absent_after: config.absent_after,
        dropped_after: config.dropped_after,
        ..ScabbardOptions::default()
    };
    let token = CylinderToken::new(&key(config.key_file.as_deref())?);
    let scabbard =
        Scabbard::new(&token, nodes.for_statuses(), options).map_err(StartError::part)?;
    Ok(Ledger {
        sender: Arc::new(scabbard.sender()),
        reader: Arc::new(scabbard.status_reader()),
        evidence: Arc::new(scabbard.evidence_reader()),
        events: Some(Arc::new(scabbard.events())),
        nodes,
        withdrawals: None,
    })
}

/// The key that the service is known by: 64 hex digits in a file.
fn key(file: Option<&Path>) -> Result<SigningKey, StartError> {
    let Some(file) = file else {
        return Err(StartError::Missing {
            name: "ledger.key_file",
            rule: "scabbard asks who is there: it must be a file of a secret key, 64 hex digits",
        });
    };
    let text = secret::of_file(file)?;
    text.trim().parse().map_err(|error| secret::unusable(file, error))
}
