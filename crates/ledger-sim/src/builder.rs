use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    sync::Arc,
    thread,
    time::Duration,
};

use grid_batch_core::{Clock, ServiceScopeId, SystemClock};
use grid_batch_protocol::{PublicKey, VerifiedBatch};
use thiserror::Error;
use tokio::sync::oneshot;

use crate::{
    Fault, LedgerSim, RecordError, When,
    common::{Common, Rule, Settings},
    faults::Faults,
    ledger::Ledger,
    record::Record,
    sawtooth::Sawtooth,
    scabbard::{Keys, Scabbard},
    server,
    shared::Shared,
};

/// What a simulated ledger is to be like, before it is started.
#[must_use]
pub struct LedgerSimBuilder {
    kind: Kind,
    port: u16,
    clock: Arc<dyn Clock>,
    seed: Option<u64>,
    record: Option<PathBuf>,
    faults: Vec<(Fault, When)>,
    rule: Option<Rule>,
    keys: Keys,
    settings: Settings,
}

enum Kind {
    Sawtooth,
    Scabbard(Vec<ServiceScopeId>),
}

/// What a Scabbard service makes of a batch that is executed again though it was committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SentTwice {
    /// It is invalid now, because what it changes is changed already.
    #[default]
    Invalid,
    /// It is executed, **which applies it a second time**; its commit then fails on the receipts,
    /// it stays Valid for ever, and its service stands still until the coordinator gives up.
    StuckValid,
}

/// Why a simulated ledger does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The port is taken, or not allowed.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The record cannot be read, or not be gone on with.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The thread that serves could not be started.
    #[error("cannot start the thread that serves")]
    Thread(#[source] io::Error),
}

impl LedgerSimBuilder {
    const COORDINATOR_TIMEOUT: Duration = Duration::from_secs(30);
    const BLOCK_SIZE: usize = 100;

    pub(crate) fn sawtooth() -> Self {
        Self::new(Kind::Sawtooth)
    }

    pub(crate) fn scabbard(services: Vec<ServiceScopeId>) -> Self {
        Self::new(Kind::Scabbard(services))
    }

    fn new(kind: Kind) -> Self {
        Self {
            kind,
            port: 0,
            clock: Arc::new(SystemClock),
            seed: None,
            record: None,
            faults: Vec::new(),
            rule: None,
            keys: Keys::Any,
            settings: Settings {
                pending_for: Duration::ZERO,
                valid_for: Duration::ZERO,
                coordinator_timeout: Self::COORDINATOR_TIMEOUT,
                block_size: Self::BLOCK_SIZE,
                back_pressure: true,
                sent_twice: SentTwice::default(),
            },
        }
    }

    /// The port on the loopback interface. Without it, or with 0, one that is free.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Where the time comes from. Without it, from the machine.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// What decides where chance decides. Without it, the time of the start does.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How long a batch is pending before it is executed: by default no time at all.
    pub fn pending_for(mut self, duration: Duration) -> Self {
        self.settings.pending_for = duration;
        self
    }

    /// How long a batch is Valid before it is committed: by default no time at all. Sawtooth shows
    /// it as PENDING all the while.
    pub fn valid_for(mut self, duration: Duration) -> Self {
        self.settings.valid_for = duration;
        self
    }

    /// How long a Scabbard service stands still for a batch that it drops: by default 30 seconds.
    pub fn coordinator_timeout(mut self, duration: Duration) -> Self {
        self.settings.coordinator_timeout = duration;
        self
    }

    /// How many batches one block of Sawtooth holds, at least one: by default 100. Its queue's
    /// limit follows the size of blocks.
    pub fn block_size(mut self, batches: usize) -> Self {
        self.settings.block_size = batches.max(1);
        self
    }

    /// Takes any number of batches, as a Scabbard service of version 1 does. Without this, one that
    /// has too many waiting answers 429.
    pub fn without_back_pressure(mut self) -> Self {
        self.settings.back_pressure = false;
        self
    }

    /// What a Scabbard service makes of a batch that it has committed before.
    pub fn sent_twice(mut self, sent_twice: SentTwice) -> Self {
        self.settings.sent_twice = sent_twice;
        self
    }

    /// Lets only the holders of these keys use Scabbard. Without this, whoever has a key may.
    pub fn allow_keys(mut self, keys: impl IntoIterator<Item = PublicKey>) -> Self {
        self.keys = Keys::Allowed(keys.into_iter().collect());
        self
    }

    /// Writes the record to this file, and goes on from what is in it.
    pub fn record_to(mut self, path: impl Into<PathBuf>) -> Self {
        self.record = Some(path.into());
        self
    }

    /// Switches a fault on from the start, as [`LedgerSim::inject`] does later.
    pub fn fault(mut self, fault: Fault, when: When) -> Self {
        self.faults.push((fault, when));
        self
    }

    /// Finds a batch invalid, with this message, whenever `rule` gives one.
    pub fn refuse(
        mut self,
        rule: impl Fn(&VerifiedBatch) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// Starts the ledger. It serves until it is dropped.
    pub fn start(self) -> Result<LedgerSim, StartError> {
        let record = match &self.record {
            Some(path) => Record::open(path)?,
            None => Record::in_memory(),
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let (listener, address) = listen(address)?;
        let seed = self.seed.unwrap_or_else(seed_of_the_moment);
        let shared = Arc::new(self.shared(record, seed));
        let (stop, stopped) = oneshot::channel();
        let runtime = server::runtime().map_err(StartError::Thread)?;
        let serving = shared.clone();
        let thread = thread::Builder::new()
            .name("ledger-sim".to_owned())
            .spawn(move || {
                if let Err(error) = runtime.block_on(server::serve(listener, serving, stopped)) {
                    log::error!("the simulated ledger at {address} cannot serve: {error}");
                }
            })
            .map_err(StartError::Thread)?;
        log::info!(seed, address:%; "a simulated ledger serves");
        Ok(LedgerSim::new(shared, address, seed, stop, thread))
    }

    fn shared(self, record: Record, seed: u64) -> Shared {
        let ledger: Box<dyn Ledger> = match self.kind {
            Kind::Sawtooth => Box::new(Sawtooth::new(&record)),
            Kind::Scabbard(services) => Box::new(Scabbard::new(services, self.keys, &record)),
        };
        let faults = Faults::new(self.faults, seed);
        let common = Common::new(self.settings, faults, record, self.rule, seed);
        Shared::new(ledger, common, self.clock)
    }
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let error = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(error)?;
    listener.set_nonblocking(true).map_err(error)?;
    let address = listener.local_addr().map_err(error)?;
    Ok((listener, address))
}

fn seed_of_the_moment() -> u64 {
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

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sawtooth => f.write_str("Sawtooth"),
            Self::Scabbard(services) => f.debug_tuple("Scabbard").field(services).finish(),
        }
    }
}
