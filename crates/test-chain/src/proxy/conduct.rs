use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use serde_json::Value;

use super::{
    answer::{refusal, result},
    desk::{Desk, Moment},
    mempool::Mempool,
};
use crate::{Fault, endpoint::Endpoint};

/// What becomes of a call.
#[derive(Debug)]
pub(super) struct Conduct {
    node: Endpoint,
    desk: Mutex<Desk>,
    mempool: Mutex<Mempool>,
}

/// What the caller gets.
#[derive(Debug)]
pub(super) enum Reply {
    Answer(Vec<u8>),
    Status { code: u16, retry_after: Option<Duration> },
    Nothing,
}

impl From<Option<Value>> for Reply {
    fn from(answer: Option<Value>) -> Self {
        answer.map_or(Self::Nothing, |answer| Self::Answer(answer.to_string().into_bytes()))
    }
}

impl Conduct {
    pub(super) fn new(upstream_url: &str) -> Self {
        let node = Endpoint::new(upstream_url.to_owned());
        Self { node, desk: Mutex::default(), mempool: Mutex::default() }
    }

    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn mempool(&self) -> MutexGuard<'_, Mempool> {
        self.mempool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does with a request as it was ordered. Blocks as long as that takes.
    pub(super) fn reply(&self, request: &[u8]) -> Reply {
        let call: Value = serde_json::from_slice(request).unwrap_or_default();
        let Some(method) = call["method"].as_str() else {
            return self.node.post(request).map_or(Reply::Nothing, Reply::Answer);
        };
        let gates = self.desk().note(method);
        if !gates.pass(Moment::Before) {
            return Reply::Nothing;
        }
        let reply = self.meet_fault(method, &call);
        if !gates.pass(Moment::After) {
            return Reply::Nothing;
        }
        reply
    }

    fn meet_fault(&self, method: &str, call: &Value) -> Reply {
        let fault = self.desk().fault_for(method);
        let Some((fault, memory)) = fault else { return self.forward(call).into() };
        match fault {
            Fault::Status { code, retry_after } => Reply::Status { code, retry_after },
            Fault::Answer { code, message } => Some(refusal(call, code, &message)).into(),
            Fault::Null => Some(result(call, Value::Null)).into(),
            Fault::NotForwarded => Reply::Nothing,
            Fault::LostAnswer => {
                self.forward(call);
                Reply::Nothing
            }
            Fault::Slow(pause) => {
                let forwarded = self.forward(call);
                thread::sleep(pause);
                forwarded.into()
            }
            Fault::Stale => memory.first(call, || self.forward(call)).into(),
        }
    }

    /// The node's answer; none where the node is not there.
    fn forward(&self, call: &Value) -> Option<Value> {
        self.mempool().forward(&self.node, call)
    }
}
