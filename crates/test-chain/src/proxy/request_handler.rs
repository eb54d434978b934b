use std::{
    sync::{Mutex, MutexGuard},
    thread,
    time::Duration,
};

use grid_batch_local_chain::Endpoint;
use grid_batch_support::lock;
use serde_json::Value;

use super::{
    behavior::{ProxyBehavior, StopPoint},
    mempool::Mempool,
    response::{error_response, result_response},
};
use crate::Fault;

/// Handles the requests of the proxy: forwards them to the node, or injects a fault.
#[derive(Debug)]
pub(super) struct RequestHandler {
    node: Endpoint,
    behavior: Mutex<ProxyBehavior>,
    mempool: Mutex<Mempool>,
}

/// What the client gets.
#[derive(Debug)]
pub(super) enum Reply {
    Body(Vec<u8>),
    Status { code: u16, retry_after: Option<Duration> },
    ConnectionClosed,
}

impl From<Option<Value>> for Reply {
    fn from(response: Option<Value>) -> Self {
        response.map_or(Self::ConnectionClosed, |response| {
            Self::Body(response.to_string().into_bytes())
        })
    }
}

impl RequestHandler {
    pub(super) fn new(upstream_url: &str) -> Self {
        let node = Endpoint::new(upstream_url.to_owned());
        Self { node, behavior: Mutex::default(), mempool: Mutex::default() }
    }

    pub(super) fn behavior(&self) -> MutexGuard<'_, ProxyBehavior> {
        lock(&self.behavior)
    }

    pub(super) fn mempool(&self) -> MutexGuard<'_, Mempool> {
        lock(&self.mempool)
    }

    /// Handles one request. Blocks while the call is held or slow.
    pub(super) fn reply(&self, request: &[u8]) -> Reply {
        let call: Value = serde_json::from_slice(request).unwrap_or_default();
        if let Value::Array(calls) = &call {
            return self.reply_to_batch(calls);
        }
        self.reply_to_call(request, &call)
    }

    /// Handles the calls of a batch one after another, each with its own faults. A fault of the connection or of HTTP
    /// affects the whole batch, although the node may have received some of its calls.
    fn reply_to_batch(&self, calls: &[Value]) -> Reply {
        let mut responses: Vec<Value> = Vec::with_capacity(calls.len());
        let mut failed = None;
        for call in calls {
            match self.reply_to_call(call.to_string().as_bytes(), call) {
                Reply::Body(body) => {
                    responses.push(serde_json::from_slice(&body).unwrap_or_default());
                }
                fault => failed = failed.or(Some(fault)),
            }
        }
        failed.unwrap_or_else(|| Some(Value::Array(responses)).into())
    }

    fn reply_to_call(&self, request: &[u8], call: &Value) -> Reply {
        let Some(method) = call["method"].as_str() else {
            return self.node.post(request).map_or(Reply::ConnectionClosed, Reply::Body);
        };
        let stops = self.behavior().record_call(method);
        if !stops.wait(StopPoint::BeforeNode) {
            return Reply::ConnectionClosed;
        }
        let reply = self.forward_or_fail(method, call);
        if !stops.wait(StopPoint::AfterNode) {
            return Reply::ConnectionClosed;
        }
        reply
    }

    fn forward_or_fail(&self, method: &str, call: &Value) -> Reply {
        let fault = self.behavior().next_fault(method);
        let Some((fault, first_responses)) = fault else { return self.forward(call).into() };
        match fault {
            Fault::Status { code, retry_after } => Reply::Status { code, retry_after },
            Fault::RpcError { code, message } => Some(error_response(call, code, &message)).into(),
            Fault::Null => Some(result_response(call, Value::Null)).into(),
            Fault::Result(result) => Some(result_response(call, result)).into(),
            Fault::NotForwarded => Reply::ConnectionClosed,
            Fault::LostAnswer => {
                self.forward(call);
                Reply::ConnectionClosed
            }
            Fault::Slow(delay) => {
                let response = self.forward(call);
                thread::sleep(delay);
                response.into()
            }
            Fault::Stale => first_responses.get_or_insert(call, || self.forward(call)).into(),
        }
    }

    /// The node's response; `None` if the node is unreachable.
    fn forward(&self, call: &Value) -> Option<Value> {
        self.mempool().forward(&self.node, call)
    }
}
