use std::{
    collections::HashSet,
    fmt, io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    sync::Arc,
    thread,
    time::Duration,
};

use grid_batch_core::{Clock, ItemId, ServiceScopeId, SystemClock};
use grid_batch_protocol::{PublicKey, VerifiedBatch};
use thiserror::Error;
use tokio::sync::oneshot;

use crate::{
    Fault, LedgerSim, RecordError, When,
    common_state::{CommonState, InvalidityRule, LedgerSettings, PredecessorRule},
    faults::Faults,
    genesis,
    ledger::SimulatedLedger,
    ledger_sim::SharedParts,
    port::PortControl,
    record::Record,
    sawtooth::{SharedChain, SimulatedSawtooth},
    scabbard::{AllowedKeys, Circuits, SimulatedScabbard},
    server,
    sim_context::SimContext,
};

/// The configuration of a simulated ledger.
#[must_use]
pub struct LedgerSimBuilder {
    kind: LedgerKind,
    port: u16,
    clock: Arc<dyn Clock>,
    seed: Option<u64>,
    genesis: Option<ItemId>,
    record: Option<PathBuf>,
    faults: Vec<(Fault, When)>,
    rule: Option<InvalidityRule>,
    predecessor: Option<PredecessorRule>,
    chain: SharedChain,
    lag: Duration,
    circuits: Circuits,
    not_found: Option<ServiceScopeId>,
    keys: AllowedKeys,
    settings: LedgerSettings,
}

enum LedgerKind {
    Sawtooth,
    Scabbard(Vec<ServiceScopeId>),
}

/// The behaviour of a Scabbard service when a committed batch is sent again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SentTwice {
    /// The batch becomes invalid, because the state was already changed.
    #[default]
    Invalid,
    /// The batch is executed, **which applies it a second time**. Its commit fails because its
    /// receipts exist. It stays Valid, and blocks its service until the coordinator gives up.
    StuckValid,
    /// The batch is executed **and committed a second time**, with events.
    Committed,
}

/// The reason why a simulated ledger does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The port is in use or not permitted.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The record cannot be opened.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The service that a node was to join is not at the other node.
    #[error("the node whose circuit is joined has no service {0}")]
    NoService(ServiceScopeId),
    /// The server thread or its runtime cannot be started.
    #[error("cannot start the server thread")]
    Thread(#[source] io::Error),
}

impl LedgerSimBuilder {
    const COORDINATOR_TIMEOUT: Duration = Duration::from_secs(30);
    const BLOCK_SIZE: usize = 100;

    pub(crate) fn sawtooth() -> Self {
        Self::new(LedgerKind::Sawtooth)
    }

    pub(crate) fn scabbard(services: Vec<ServiceScopeId>) -> Self {
        Self::new(LedgerKind::Scabbard(services))
    }

    fn new(kind: LedgerKind) -> Self {
        Self {
            kind,
            port: 0,
            clock: Arc::new(SystemClock),
            seed: None,
            genesis: None,
            record: None,
            faults: Vec::new(),
            rule: None,
            predecessor: None,
            chain: SharedChain::default(),
            lag: Duration::ZERO,
            circuits: Circuits::default(),
            not_found: None,
            keys: AllowedKeys::Any,
            settings: LedgerSettings {
                pending_for: Duration::ZERO,
                valid_for: Duration::ZERO,
                coordinator_timeout: Self::COORDINATOR_TIMEOUT,
                block_size: Self::BLOCK_SIZE,
                block_interval: Duration::ZERO,
                keeps_order: false,
                back_pressure: true,
                sent_twice: SentTwice::default(),
            },
        }
    }

    /// Sets the port on the loopback interface. The default, 0, selects a free port.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets the clock. The default is the system's clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the seed of random numbers. The default is the time of the start.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the id of Sawtooth's first block. Two nodes with the same id belong to one ledger. The default is the id in
    /// the file beside the record; without a record, it follows from the seed.
    pub fn genesis(mut self, id: ItemId) -> Self {
        self.genesis = Some(id);
        self
    }

    /// Sets how long a batch is pending before it is executed. The default is zero.
    pub fn pending_for(mut self, duration: Duration) -> Self {
        self.settings.pending_for = duration;
        self
    }

    /// Sets how long a batch is Valid before it is committed. The default is zero. During that time, Sawtooth reports
    /// it as PENDING.
    pub fn valid_for(mut self, duration: Duration) -> Self {
        self.settings.valid_for = duration;
        self
    }

    /// Sets how long a dropped batch blocks its Scabbard service. The default is 30 seconds.
    pub fn coordinator_timeout(mut self, duration: Duration) -> Self {
        self.settings.coordinator_timeout = duration;
        self
    }

    /// Sets the limit on the number of batches in a block of Sawtooth, at least one. The default is 100.
    /// The limit of its queue depends on the size of blocks.
    pub fn block_size(mut self, batches: usize) -> Self {
        self.settings.block_size = batches.max(1);
        self
    }

    /// Publishes at most one block of Sawtooth in each interval of this length. By default, a block is
    /// published whenever a batch is due.
    pub fn block_interval(mut self, interval: Duration) -> Self {
        self.settings.block_interval = interval;
        self
    }

    /// Makes a node of Sawtooth execute all batches in the order of arrival. By default, only batches that conflict by
    /// their declared addresses are executed in that order.
    pub fn keeps_order(mut self) -> Self {
        self.settings.keeps_order = true;
        self
    }

    /// Accepts any number of batches, as a Scabbard service of version 1 does. By default, a ledger
    /// with a full queue answers 429.
    pub fn without_back_pressure(mut self) -> Self {
        self.settings.back_pressure = false;
        self
    }

    /// Sets what a Scabbard service does with a committed batch that is sent again.
    pub fn sent_twice(mut self, sent_twice: SentTwice) -> Self {
        self.settings.sent_twice = sent_twice;
        self
    }

    /// Allows only these keys to use Scabbard. By default, any key may.
    pub fn allow_keys(mut self, keys: impl IntoIterator<Item = PublicKey>) -> Self {
        let readers = HashSet::new();
        self.keys = AllowedKeys::Only { keys: keys.into_iter().collect(), readers };
        self
    }

    /// Lets these keys read from Scabbard, if not all keys may use it.
    pub fn allow_readers(mut self, readers: impl IntoIterator<Item = PublicKey>) -> Self {
        if let AllowedKeys::Only { readers: allowed, .. } = &mut self.keys {
            allowed.extend(readers);
        }
        self
    }

    /// Writes the record to this file, and continues from its entries.
    pub fn record_to(mut self, path: impl Into<PathBuf>) -> Self {
        self.record = Some(path.into());
        self
    }

    /// Switches a fault on from the start.
    pub fn fault(mut self, fault: Fault, when: When) -> Self {
        self.faults.push((fault, when));
        self
    }

    /// Makes a batch invalid if `rule` returns a message for it.
    pub fn refuse(
        mut self,
        rule: impl Fn(&VerifiedBatch) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// Makes a batch invalid at a node of Sawtooth that has not applied the batch that `rule` returns for it, as if the
    /// batch read what the other one wrote.
    pub fn execute_after(
        mut self,
        rule: impl Fn(&VerifiedBatch) -> Option<ItemId> + Send + Sync + 'static,
    ) -> Self {
        self.predecessor = Some(Arc::new(rule));
        self
    }

    /// Makes the Sawtooth ledger another node of the chain of `node`. Each node executes the batches that are posted to
    /// it, and applies the blocks of the others this long after they were published.
    pub fn join_chain_of(mut self, node: &LedgerSim, lag: Duration) -> Self {
        (self.chain, self.lag) = (node.chain(), lag);
        self
    }

    /// Makes the Splinter node another node of the circuits of `node`. Each pair is the id of a service
    /// there and its id here. All nodes must join before batches are sent.
    pub fn join_circuit_of(
        mut self,
        node: &LedgerSim,
        services: impl IntoIterator<Item = (ServiceScopeId, ServiceScopeId)>,
    ) -> Self {
        for (theirs, own) in services {
            match node.circuits().find(&theirs) {
                Some(service) => self.circuits.insert(own, service),
                None => self.not_found = Some(theirs),
            }
        }
        self
    }

    /// Starts the ledger. It serves until it is dropped.
    pub fn start(self) -> Result<LedgerSim, StartError> {
        if let Some(service) = self.not_found {
            return Err(StartError::NoService(service));
        }
        let record = match &self.record {
            Some(path) => Record::open(path)?,
            None => Record::in_memory(),
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let (listener, address) = listen(address)?;
        let seed = self.seed.unwrap_or_else(seed_from_time);
        let chain = self.chain.clone();
        let genesis = match (self.genesis, &self.record) {
            (Some(id), _) => id,
            (None, Some(path)) => genesis::kept_beside(path, seed)?,
            (None, None) => genesis::from_seed(seed),
        };
        let genesis = chain.genesis_or(genesis);
        let (context, circuits) = self.into_context(record, seed, genesis);
        let context = Arc::new(context);
        let (port_control, port) = PortControl::new();
        let (stop, stopped) = oneshot::channel();
        let runtime = server::runtime().map_err(StartError::Thread)?;
        let server_context = context.clone();
        let thread = thread::Builder::new()
            .name("ledger-sim".to_owned())
            .spawn(move || {
                if let Err(error) =
                    runtime.block_on(server::serve(listener, port, server_context, stopped))
                {
                    log::error!("the simulated ledger at {address} cannot serve: {error}");
                }
            })
            .map_err(StartError::Thread)?;
        log::info!(seed, address:%; "simulated ledger started");
        let shared = SharedParts { chain, circuits };
        Ok(LedgerSim::new(context, address, seed, shared, port_control, stop, thread))
    }

    fn into_context(self, record: Record, seed: u64, genesis: ItemId) -> (SimContext, Circuits) {
        let mut circuits = self.circuits;
        let ledger: Box<dyn SimulatedLedger> = match self.kind {
            LedgerKind::Sawtooth => {
                Box::new(SimulatedSawtooth::new(&record, genesis, &self.chain, self.lag))
            }
            LedgerKind::Scabbard(services) => {
                Box::new(SimulatedScabbard::new(services, self.keys, &mut circuits, &record))
            }
        };
        let faults = Faults::new(self.faults, seed);
        let mut common = CommonState::new(self.settings, faults, record, self.rule, seed);
        common.predecessor = self.predecessor;
        (SimContext::new(ledger, common, self.clock), circuits)
    }
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let error = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(error)?;
    listener.set_nonblocking(true).map_err(error)?;
    let address = listener.local_addr().map_err(error)?;
    Ok((listener, address))
}

fn seed_from_time() -> u64 {
    SystemClock.now().as_micros().unsigned_abs()
}

impl fmt::Debug for LedgerSimBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerSimBuilder")
            .field("kind", &self.kind)
            .field("port", &self.port)
            .field("seed", &self.seed)
            .field("record", &self.record)
            .field("faults", &self.faults)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LedgerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sawtooth => f.write_str("Sawtooth"),
            Self::Scabbard(services) => f.debug_tuple("Scabbard").field(services).finish(),
        }
    }
}
