use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    sync::{Arc, MutexGuard},
};

use tokio::runtime::{Builder, Runtime};

use super::{
    behavior::{ANY_METHOD, ProxyBehavior, StopPoint},
    request_handler::RequestHandler,
    server,
    transaction::SentTransaction,
};
use crate::{ChainError, Fault, Stop};

/// A proxy in front of a node that injects faults of real nodes, for single JSON-RPC methods.
///
/// By default it forwards every call. The calls of a batch are forwarded one after another, each with its
/// own faults. A method is named as in `"eth_blockNumber"`; [`ANY`](Self::ANY) means every
/// method, and a fault of a single method takes precedence.
///
/// Dropping the value stops it and closes all connections.
#[derive(Debug)]
pub struct FaultProxy {
    url: String,
    handler: Arc<RequestHandler>,
    runtime: Option<Runtime>,
}

impl FaultProxy {
    /// Every method.
    pub const ANY: &str = ANY_METHOD;

    /// Starts a proxy for the node at this URL, on a free local port.
    pub fn start(upstream_url: &str) -> Result<Self, ChainError> {
        let start_error = |source| ChainError::Start { what: "the proxy", source };
        let handler = Arc::new(RequestHandler::new(upstream_url));
        let (port, runtime) = serve(handler.clone()).map_err(start_error)?;
        let url = format!("http://127.0.0.1:{port}");
        Ok(Self { url, handler, runtime: Some(runtime) })
    }

    /// The URL of the proxy.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the fault of every call of the method from now on. It replaces the method's last fault.
    pub fn set(&self, method: &str, fault: Fault) {
        self.behavior().set_fault(method, fault, None);
    }

    /// Like [`set`](Self::set), but only for this many calls.
    pub fn set_next(&self, method: &str, calls: usize, fault: Fault) {
        self.behavior().set_fault(method, fault, Some(calls));
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.behavior().clear_faults();
    }

    /// Holds the `nth` call of the method from now on, counted from 1, before its fault applies and
    /// before the node gets it.
    pub fn stop_before(&self, method: &str, nth: usize) -> Stop {
        Stop(self.behavior().add_stop(StopPoint::BeforeNode, method, nth))
    }

    /// Holds the `nth` call of the method from now on, counted from 1, after the node has responded
    /// and before the client gets the response.
    pub fn stop_after(&self, method: &str, nth: usize) -> Stop {
        Stop(self.behavior().add_stop(StopPoint::AfterNode, method, nth))
    }

    /// Requires, as geth does, that a replacement raises both fees by this many percent; otherwise
    /// it is refused as `replacement transaction underpriced`. A transaction that is sent again is
    /// `already known`.
    pub fn require_bump(&self, percent: u32) {
        self.handler.mempool().require_bump(percent);
    }

    /// Keeps transactions below the base fee pending, as geth does; anvil refuses them. The proxy
    /// answers requests for them, and sends them to the node during a later call when the base fee
    /// allows it.
    pub fn keep_underpriced(&self) {
        self.handler.mempool().keep_underpriced();
    }

    /// How many times the method was called.
    pub fn calls(&self, method: &str) -> usize {
        let any = method == Self::ANY;
        self.log().iter().filter(|call| any || *call == method).count()
    }

    /// The methods that were called, in order.
    pub fn log(&self) -> Vec<String> {
        self.behavior().calls().to_vec()
    }

    /// The transactions that were sent to the node, in order, with repetitions.
    pub fn sent(&self) -> Vec<SentTransaction> {
        self.handler.mempool().sent().to_vec()
    }

    fn behavior(&self) -> MutexGuard<'_, ProxyBehavior> {
        self.handler.behavior()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        // Waiting for held or slow calls could take forever.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn serve(handler: Arc<RequestHandler>) -> io::Result<(u16, Runtime)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_io().build()?;
    let listener = {
        let _guard = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    runtime.spawn(server::accept(listener, handler));
    Ok((port, runtime))
}
