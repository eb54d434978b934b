//! The configured ledger: its adapter and its nodes.

#[cfg(feature = "evm")]
mod evm;
#[cfg(feature = "evm")]
mod former_gas_admins;
#[cfg(feature = "evm")]
mod gas;
#[cfg(feature = "evm")]
mod gas_admins;
mod key_file;
#[cfg(feature = "evm")]
mod payments;

use std::{path::Path, sync::Arc};

use grid_batch_core::{
    AskAhead, BatchStatusReader, Clock, EvidenceReader, GlobalScopeId, LedgerEvents,
    LedgerIdentity, LedgerIdentityReader, NodeCheck, PassThrough, ScopeId, ServiceCheck,
    ServiceScopeId, StatusReport, SubmissionSender, TransactionCheck,
};
use grid_batch_nodes::NodePool;
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_sawtooth::{Sawtooth, SawtoothIdentityReader, SawtoothOptions, SawtoothPassThrough};
use grid_batch_scabbard::{
    NewBatchRules, Scabbard, ScabbardIdentityReader, ScabbardOptions, ScabbardPassThrough,
    ScabbardStateRoots,
};
use grid_batch_store::Store;
use grid_batch_withdrawals::WithdrawalRules;

use super::gas::GasMonitor;
use super::ledger_check::{
    CheckedEvents, CheckedEvidenceReader, CheckedSender, CheckedStatusReader, LedgerCheck,
    LedgerCheckOptions,
};
use crate::{Config, LedgerConfig, LedgerKind, PollConfig, StartError};

#[cfg(feature = "evm")]
pub(super) use evm::evm;

impl Config {
    /// The same configuration, whose store keeps the limits of what is scheduled from pools. Whatever
    /// schedules withdrawals opens its store with it.
    pub fn with_payment_limits(&self) -> Result<Self, StartError> {
        #[cfg_attr(not(feature = "evm"), expect(unused_mut))]
        let mut config = self.clone();
        #[cfg(feature = "evm")]
        {
            config.store.payment_limits = Arc::new(payments::limits(&self.evm)?);
        }
        Ok(config)
    }
}

/// A ledger's adapter, in the parts that the server needs.
pub(super) struct Ledger<S: ScopeId> {
    pub(super) sender: Arc<dyn SubmissionSender<Id = S>>,
    pub(super) reader: Arc<dyn BatchStatusReader<Status = StatusReport> + Sync>,
    pub(super) evidence: Arc<dyn EvidenceReader + Sync>,
    /// Asks about batches before it is their turn, if the sender asks before it sends.
    pub(super) ask_ahead: Option<Arc<dyn AskAhead>>,
    /// Tells which transactions the ledger has applied, if batches may depend on transactions.
    pub(super) transactions: Option<Arc<dyn TransactionCheck>>,
    /// `None` if the ledger has no events.
    pub(super) events: Option<Arc<dyn LedgerEvents>>,
    pub(super) nodes: NodePool,
    /// Checks a node before a batch is sent to it, if the ledger has several and they need that.
    pub(super) node_check: Option<Arc<dyn NodeCheck<Id = S>>>,
    /// Tells which services the ledger does not have, if it has services.
    pub(super) service_check: Option<Arc<dyn ServiceCheck>>,
    /// Has a node answer the other requests of the ledger's clients, if it has clients of its own.
    pub(super) pass_through: Option<Arc<dyn PassThrough>>,
    /// The rules of withdrawals, if the ledger has pools. It accepts no other batches then.
    pub(super) withdrawals: Option<Arc<dyn WithdrawalRules>>,
    /// Watches the gas price and the balances, if the ledger has gas.
    pub(super) gas: Option<Arc<dyn GasMonitor>>,
    /// Tells where the nodes have different states, if a service is at several.
    pub(super) state_roots: Option<ScabbardStateRoots>,
}

impl<S: ScopeId> Ledger<S> {
    /// The same, kept away from nodes that have not confirmed their ledger.
    pub(super) fn checked(self, check: &LedgerCheck) -> Self {
        let Self { sender, reader, evidence, events, nodes, .. } = self;
        let all = || Arc::new(nodes.clone());
        let checked_events =
            |events| Arc::new(CheckedEvents::new(events, check.clone())) as Arc<dyn LedgerEvents>;
        Self {
            sender: Arc::new(CheckedSender::new(sender, check.clone())),
            reader: Arc::new(CheckedStatusReader::<S>::new(reader, all(), check.clone())),
            evidence: Arc::new(CheckedEvidenceReader::<S>::new(evidence, all(), check.clone())),
            events: events.map(checked_events),
            ask_ahead: self.ask_ahead,
            transactions: self.transactions,
            node_check: self.node_check,
            service_check: self.service_check,
            pass_through: self.pass_through,
            nodes,
            withdrawals: self.withdrawals,
            gas: self.gas,
            state_roots: self.state_roots,
        }
    }
}

/// Asks the nodes which ledger they belong to.
pub(super) fn identity_reader(
    config: &Config,
) -> Result<Arc<dyn LedgerIdentityReader>, StartError> {
    if config.ledger.lacks_name() {
        return Err(StartError::Missing { name: "ledger.name", rule: LedgerConfig::NAME_RULE });
    }
    let http = &config.ledger.http;
    match config.ledger.kind {
        Some(LedgerKind::Sawtooth) => Ok(Arc::new(SawtoothIdentityReader::new(http, None)?)),
        Some(LedgerKind::Scabbard) => Ok(Arc::new(ScabbardIdentityReader::new(http)?)),
        #[cfg(feature = "evm")]
        Some(LedgerKind::Evm) => Ok(Arc::new(grid_batch_evm::EvmIdentityReader::new(http)?)),
        #[cfg(not(feature = "evm"))]
        Some(LedgerKind::Evm) => Err(StartError::NotBuilt { kind: "evm" }),
        None => Err(StartError::no_ledger_kind()),
    }
}

/// The names of the gas admins of an EVM chain and their addresses, whose keys are read for this.
pub fn gas_admin_addresses(config: &Config) -> Result<Vec<(String, String)>, StartError> {
    #[cfg(feature = "evm")]
    {
        let signers = gas_admins::gas_admin_signers(config)?.into_iter();
        Ok(signers.map(|(name, signer)| (name.to_owned(), signer.address().to_string())).collect())
    }
    #[cfg(not(feature = "evm"))]
    {
        let _ = config;
        Err(StartError::NotBuilt { kind: "evm" })
    }
}

/// Keeps the server away from nodes of other ledgers.
pub(super) fn check(config: &Config) -> Result<LedgerCheck, StartError> {
    check_with(identity_reader(config)?, config)
}

fn check_with(
    reader: Arc<dyn LedgerIdentityReader>,
    config: &Config,
) -> Result<LedgerCheck, StartError> {
    let options = LedgerCheckOptions {
        configured: configured_ledger(config)?,
        pool: config.ledger.http.nodes.clone(),
        answer_limit: config.submit.sending_limit / 2,
        clock: config.clock(),
    };
    Ok(LedgerCheck::new(reader, options))
}

/// The ledger of the settings, as far as they identify it.
fn configured_ledger(config: &Config) -> Result<LedgerIdentity, StartError> {
    let identity = config.ledger.identity().ok_or_else(StartError::no_ledger_kind)?;
    #[cfg(feature = "evm")]
    if config.ledger.kind == Some(LedgerKind::Evm) {
        let id = grid_batch_evm::EvmIdentityReader::id_of_chain(config.evm.chain_id);
        return Ok(LedgerIdentity { id, ..identity });
    }
    Ok(identity)
}

/// The parts of a Sawtooth ledger that need no store.
pub(super) struct SawtoothLedger {
    sawtooth: Sawtooth,
    pass_through: SawtoothPassThrough,
    nodes: NodePool,
    urls: Vec<String>,
}

/// The check of a Sawtooth ledger, and its other parts. They share what they see of outages: only the
/// check asks a node that does not answer.
pub(super) fn sawtooth(config: &Config) -> Result<(LedgerCheck, SawtoothLedger), StartError> {
    let nodes = config.ledger.shared_nodes()?;
    let options = SawtoothOptions {
        http: config.ledger.http.clone(),
        websocket: config.ledger.socket.clone(),
        connections: config.poll.connections,
        ..SawtoothOptions::default()
    };
    let (sawtooth, urls) = (Sawtooth::new(options)?, config.ledger.urls.clone());
    let check = check_with(Arc::new(sawtooth.identity_reader()), config)?;
    let pass_through = SawtoothPassThrough::new(&config.ledger.http, nodes.confirmed(), None)?;
    Ok((check, SawtoothLedger { sawtooth, pass_through, nodes, urls }))
}

impl SawtoothLedger {
    /// The ledger, whose committed batches are in this store.
    pub(super) fn with_store(self, store: &Store) -> Ledger<GlobalScopeId> {
        let Self { mut sawtooth, pass_through, nodes, urls } = self;
        if nodes.are_several() {
            sawtooth = sawtooth.with_several_nodes(Arc::new(store.clone()), urls.iter().cloned());
        }
        Ledger {
            sender: Arc::new(sawtooth.sender()),
            reader: Arc::new(sawtooth.status_reader(nodes.confirmed())),
            evidence: Arc::new(sawtooth.evidence_reader(nodes.confirmed())),
            events: Some(Arc::new(sawtooth.events(urls))),
            ask_ahead: Some(Arc::new(sawtooth.ask_ahead(nodes.confirmed()))),
            transactions: Some(Arc::new(sawtooth.transaction_check(nodes.confirmed()))),
            node_check: sawtooth.node_check().map(|check| Arc::new(check) as Arc<_>),
            service_check: None,
            pass_through: Some(Arc::new(pass_through)),
            nodes,
            withdrawals: None,
            gas: None,
            state_roots: None,
        }
    }
}

/// The parts of a Scabbard ledger that need no store.
pub(super) struct ScabbardLedger {
    scabbard: Scabbard,
    pass_through: ScabbardPassThrough,
    nodes: NodePool,
    rules: NewBatchRules,
}

pub(super) fn scabbard(
    config: &LedgerConfig,
    poll: &PollConfig,
    clock: Arc<dyn Clock>,
) -> Result<ScabbardLedger, StartError> {
    let nodes = config.shared_nodes()?;
    let options = ScabbardOptions { clock, ..scabbard_options(config, poll) };
    let token = CylinderToken::new(&signing_key(config.key_file.as_deref())?);
    let (confirmed, all) = (nodes.confirmed(), nodes.confirmed_of_all_services());
    let pass_through = ScabbardPassThrough::new(&config.http, confirmed, all, &token)?;
    let scabbard = Scabbard::new(&token, nodes.confirmed(), options);
    let scabbard = scabbard.map_err(StartError::part)?;
    let known = config.known_history.clone();
    let rules = NewBatchRules {
        known: Arc::new(move |service| known.iter().any(|pattern| pattern.matches(service))),
        refuse_unknown: config.refuse_unknown_history,
    };
    Ok(ScabbardLedger { scabbard, pass_through, nodes, rules })
}

fn scabbard_options(config: &LedgerConfig, poll: &PollConfig) -> ScabbardOptions {
    ScabbardOptions {
        http: config.http.clone(),
        websocket: config.socket.clone(),
        connections: poll.connections,
        late_arrival_limit: config.late_arrival_limit,
        coordinator_timeout: config.coordinator_timeout,
        peers: config.peers.clone(),
        ..ScabbardOptions::default()
    }
}

impl ScabbardLedger {
    /// The ledger, whose committed batches are in this store.
    pub(super) fn with_store(self, store: &Store) -> Ledger<ServiceScopeId> {
        let Self { scabbard, pass_through, nodes, rules } = self;
        let scabbard = scabbard
            .with_commit_history(Arc::new(store.clone()))
            .with_service_history(Arc::new(store.clone()), rules);
        Ledger {
            sender: Arc::new(scabbard.sender()),
            reader: Arc::new(scabbard.status_reader()),
            evidence: Arc::new(scabbard.evidence_reader()),
            events: Some(Arc::new(scabbard.events())),
            ask_ahead: Some(Arc::new(scabbard.sender())),
            transactions: None,
            // A service is at one node.
            node_check: None,
            service_check: Some(Arc::new(scabbard.service_check())),
            pass_through: Some(Arc::new(pass_through)),
            nodes,
            withdrawals: None,
            gas: None,
            state_roots: Some(scabbard.state_roots()),
        }
    }
}

/// A client that only asks questions of the nodes of a Scabbard ledger, also of nodes that have not confirmed it.
pub(super) fn scabbard_client(config: &Config) -> Result<Scabbard, StartError> {
    let token = CylinderToken::new(&signing_key(config.ledger.key_file.as_deref())?);
    let options = scabbard_options(&config.ledger, &config.poll);
    let nodes = Arc::new(NodePool::new(config.ledger.nodes()));
    Scabbard::new(&token, nodes, options).map_err(StartError::part)
}

/// The key that authenticates the server to the ledger.
fn signing_key(file: Option<&Path>) -> Result<SigningKey, StartError> {
    let Some(file) = file else {
        return Err(StartError::Missing {
            name: "ledger.key_file",
            rule: "scabbard authenticates its clients: it must be a file with a secret key of 64 \
                   hex digits",
        });
    };
    let text = key_file::read("key file", file)?;
    text.trim().parse().map_err(|error| key_file::unusable("key file", file, error))
}
