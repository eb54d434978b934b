//! A ledger that answers as cheaply as can be: it verifies nothing, and commits each batch a fixed time
//! after its arrival.
//!
//! It has one thread. `/bench/count` returns how many batches are committed, `/bench/requests` how many POSTs and
//! questions about statuses there were, and `/bench/report` when each batch arrived and was committed. After `/bench/busy` it answers 429 to new batches, until `/bench/ready`.

mod connection;
mod events;
mod frames;
mod http;
mod responses;
mod state;

use std::{
    cell::{Cell, RefCell},
    io::{self, Read},
    net, thread,
    time::Duration,
};

use tokio::{net::TcpListener, runtime::Builder, sync::Notify, task::LocalSet};

use self::{events::Subscribers, state::State};

/// The kind of ledger whose interface it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerKind {
    /// Statuses and events of single services.
    Scabbard,
    /// One chain for all services; events tell blocks.
    Sawtooth,
}

impl LedgerKind {
    /// The name in the settings of the server.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scabbard => "scabbard",
            Self::Sawtooth => "sawtooth",
        }
    }
}

pub(crate) struct Ledger {
    kind: LedgerKind,
    delay: Duration,
    state: RefCell<State>,
    subscribers: RefCell<Subscribers>,
    arrived: Notify,
    blocks: Cell<usize>,
    /// The POSTs of batches, and the questions about statuses.
    requests: [Cell<usize>; 2],
    /// Whether it accepts no batches for now.
    is_busy: Cell<bool>,
}

/// Runs a ledger on a free port until standard input ends. Prints the port.
pub fn run(kind: LedgerKind, delay: Duration) -> io::Result<()> {
    let listener = net::TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    thread::spawn(|| {
        // The process ends with the one that has started it.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    serve(listener, kind, delay)
}

/// Serves until the process ends.
pub fn serve(listener: net::TcpListener, kind: LedgerKind, delay: Duration) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let ledger = std::rc::Rc::new(Ledger {
        kind,
        delay,
        state: RefCell::default(),
        subscribers: RefCell::default(),
        arrived: Notify::new(),
        blocks: Cell::new(0),
        requests: Default::default(),
        is_busy: Cell::new(false),
    });
    let tasks = LocalSet::new();
    tasks.spawn_local(events::commit(ledger.clone()));
    tasks.spawn_local(events::send_pings(ledger.clone()));
    tasks.block_on(&runtime, async move {
        let listener = TcpListener::from_std(listener)?;
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                tokio::task::spawn_local(connection::serve(stream, ledger.clone()));
            }
        }
    })
}
