mod answer;
mod conduct;
mod desk;
mod mempool;
mod server;
mod transaction;
mod waiting_room;

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    sync::{Arc, MutexGuard},
};

use tokio::runtime::{Builder, Runtime};

pub use self::transaction::SentTransaction;
use self::{
    conduct::Conduct,
    desk::{Desk, Moment},
};
use crate::{ChainError, Fault, Stop};

/// Stands before a node and does, by method of JSON-RPC, what nodes are known to do wrong.
///
/// Without orders it passes everything on. What is no single call (a batch) it always passes on as it
/// is. A method is named as in `"eth_blockNumber"`, and all of them as [`ANY`](Self::ANY); what is
/// said of one method goes before what is said of all.
///
/// It ends, with all its connections, when the value is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    url: String,
    conduct: Arc<Conduct>,
    runtime: Option<Runtime>,
}

impl FaultProxy {
    /// Every method.
    pub const ANY: &str = "*";

    /// Stands before the node at this URL, on a free port of this machine.
    pub fn start(upstream_url: &str) -> Result<Self, ChainError> {
        let start_error = |source| ChainError::Start { what: "the proxy", source };
        let conduct = Arc::new(Conduct::new(upstream_url));
        let (port, runtime) = serve(conduct.clone()).map_err(start_error)?;
        let url = format!("http://127.0.0.1:{port}");
        Ok(Self { url, conduct, runtime: Some(runtime) })
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on, each call of the method meets this fault. It takes the place of what was said of
    /// the method before.
    pub fn set(&self, method: &str, fault: Fault) {
        self.desk().set(method, fault, None);
    }

    /// As [`set`](Self::set), for so many calls.
    pub fn set_next(&self, method: &str, calls: usize, fault: Fault) {
        self.desk().set(method, fault, Some(calls));
    }

    /// Ends all faults.
    pub fn clear(&self) {
        self.desk().clear();
    }

    /// Holds the `nth` call of the method from now, the first being 1, before it meets a fault or the
    /// node.
    pub fn stop_before(&self, method: &str, nth: usize) -> Stop {
        Stop(self.desk().stop(Moment::Before, method, nth))
    }

    /// Holds the `nth` call of the method from now, the first being 1, after the node has answered
    /// and before the answer is given.
    pub fn stop_after(&self, method: &str, nth: usize) -> Stop {
        Stop(self.desk().stop(Moment::After, method, nth))
    }

    /// From now on a transaction takes the place of one that waits only if it raises both fees by so
    /// many percent, as geth wants it, in geth's words: `replacement transaction underpriced`. One
    /// that is sent again is `already known`.
    pub fn require_bump(&self, percent: u32) {
        self.conduct.mempool().require_bump(percent);
    }

    /// From now on a transaction below the base fee waits, as geth has it, where anvil refuses it:
    /// it is known by its hash, and goes to the node with a later call, once the fee allows it.
    pub fn keep_underpriced(&self) {
        self.conduct.mempool().keep_underpriced();
    }

    /// How often the method was called.
    pub fn calls(&self, method: &str) -> usize {
        let any = method == Self::ANY;
        self.log().iter().filter(|called| any || *called == method).count()
    }

    /// The methods that were called, in order.
    pub fn log(&self) -> Vec<String> {
        self.desk().log().to_vec()
    }

    /// The transactions that the node was given, in order and as often as it was.
    pub fn sent(&self) -> Vec<SentTransaction> {
        self.conduct.mempool().sent().to_vec()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.conduct.desk()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        // To wait for what is held or slow could take for ever.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn serve(conduct: Arc<Conduct>) -> io::Result<(u16, Runtime)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_io().build()?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    runtime.spawn(server::accept(listener, conduct));
    Ok((port, runtime))
}
