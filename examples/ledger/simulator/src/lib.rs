//! A simulated ledger over HTTP, for tests of its adapter: accounts with sequence numbers, transactions with a last
//! height, a block at an interval, and faults that a test sets.
//!
//! | request | answer |
//! |---|---|
//! | `GET /status` | `{"network": "test", "height": 7}` |
//! | `GET /accounts/ACCOUNT/transactions/ID` | `{"height": 7, "next_sequence": 3, "state": "unknown"}`; the state is `unknown`, `waiting`, `applied`, or `failed` with an `error` |
//! | `POST /transactions` | 202: the transaction waits for a block |
//! | | 400: it is no transaction |
//! | | 409: its sequence number was used, or its height has passed |
//! | | 425: the sequence number before it was not used yet |
//! | | 503: the node is busy |
//!
//! The body of an error is a text.

mod chain;
mod server;

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{runtime::Runtime, sync::watch};

pub use chain::{Chain, Posted, Transaction, id_of};

/// What a node does with the next submissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It answers each one that it is busy.
    Busy,
    /// It refuses each one.
    Refuses,
    /// It closes the connection of the next one, and does nothing else.
    LosesRequest,
    /// It accepts the next one, and closes the connection without an answer.
    LosesAnswer,
    /// It keeps the next one, until the test releases it.
    HoldsRequest,
    /// It accepts the next one, and does not answer.
    HoldsAnswer,
}

/// A ledger with one or several nodes. It ends when it is dropped.
pub struct Simulator {
    shared: Arc<Shared>,
    urls: Vec<String>,
    runtime: Option<Runtime>,
}

/// What the nodes share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Its value changes when all connections are to be closed.
    closing: watch::Sender<u64>,
}

pub(crate) struct State {
    pub(crate) chain: Chain,
    pub(crate) fault: Option<Fault>,
    pub(crate) held: Option<Vec<u8>>,
    pub(crate) arrivals: usize,
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn closing(&self) -> watch::Receiver<u64> {
        self.closing.subscribe()
    }
}

impl Simulator {
    /// A ledger of this name with one node on a free port of this machine, and a block at this interval.
    pub fn start(network: &str, interval: Duration) -> io::Result<Self> {
        Self::start_at("127.0.0.1:0", network, interval)
    }

    /// The same at this address.
    pub fn start_at(address: &str, network: &str, interval: Duration) -> io::Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (chain, fault, held, arrivals) = (Chain::new(network), None, None, 0);
        let state = Mutex::new(State { chain, fault, held, arrivals });
        let shared = Arc::new(Shared { state, closing: watch::Sender::new(0) });
        runtime.spawn(server::produce_blocks(Arc::clone(&shared), interval));
        let mut simulator = Self { shared, urls: Vec::new(), runtime: Some(runtime) };
        simulator.add_node_at(address, 0)?;
        Ok(simulator)
    }

    /// Adds a node that is always so many blocks behind the first one.
    pub fn add_node(&mut self, lag: u64) -> io::Result<()> {
        self.add_node_at("127.0.0.1:0", lag)
    }

    fn add_node_at(&mut self, address: &str, lag: u64) -> io::Result<()> {
        let Some(runtime) = &self.runtime else { return Ok(()) };
        let shared = Arc::clone(&self.shared);
        let address = runtime.block_on(server::start(shared, address.to_owned(), lag))?;
        self.urls.push(format!("http://{address}"));
        Ok(())
    }

    /// The URLs of its nodes.
    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Begins a fault, in the place of the one before.
    pub fn set_fault(&self, fault: Fault) {
        self.shared.state().fault = Some(fault);
    }

    /// Ends the fault. A submission that is held is lost.
    pub fn heal(&self) {
        {
            let mut state = self.shared.state();
            (state.fault, state.held) = (None, None);
        }
        self.close_connections();
    }

    /// Lets the submission that is held arrive. `None`: none is held.
    pub fn release(&self) -> Option<Posted> {
        let mut state = self.shared.state();
        let held = state.held.take()?;
        Some(state.chain.post(&held, 0))
    }

    /// How many submissions have arrived.
    pub fn arrivals(&self) -> usize {
        self.shared.state().arrivals
    }

    /// Closes all connections, and forgets what waits for a block.
    pub fn restart(&self) {
        self.with_chain(Chain::forget_waiting);
        self.close_connections();
    }

    /// Reads or changes the chain.
    pub fn with_chain<T>(&self, action: impl FnOnce(&mut Chain) -> T) -> T {
        action(&mut self.shared.state().chain)
    }

    fn close_connections(&self) {
        self.shared.closing.send_modify(|count| *count += 1);
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
