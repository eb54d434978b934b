use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex},
};

use grid_batch_support::lock;
use serde_json::{Value, json};

use crate::{Fault, stop::StopSignal};

/// Stands for every method.
pub(super) const ANY_METHOD: &str = "*";

/// The faults and stops that a test has set, and the methods that were called.
#[derive(Debug, Default)]
pub(super) struct ProxyBehavior {
    faults: HashMap<String, ActiveFault>,
    stops: Vec<PendingStop>,
    calls: Vec<String>,
}

/// Where a stop holds a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopPoint {
    BeforeNode,
    AfterNode,
}

#[derive(Debug)]
struct ActiveFault {
    fault: Fault,
    /// How many more calls fail; `None`: all.
    calls_left: Option<usize>,
    first_responses: Arc<FirstResponses>,
}

#[derive(Debug)]
struct PendingStop {
    point: StopPoint,
    method: String,
    calls_left: usize,
    signal: Arc<StopSignal>,
}

/// The first response to each call, for [`Fault::Stale`].
#[derive(Debug, Default)]
pub(super) struct FirstResponses(Mutex<HashMap<String, Value>>);

impl FirstResponses {
    /// The first response to an equal call, or the response now.
    pub(super) fn get_or_insert(
        &self,
        call: &Value,
        forward: impl FnOnce() -> Option<Value>,
    ) -> Option<Value> {
        let mut responses = lock(&self.0);
        let key = json!([call["method"], call["params"]]).to_string();
        let mut response = match responses.entry(key) {
            Entry::Occupied(first) => first.get().clone(),
            Entry::Vacant(entry) => entry.insert(forward()?).clone(),
        };
        response["id"] = call["id"].clone();
        Some(response)
    }
}

/// The stops that hold one call.
#[derive(Debug)]
pub(super) struct CallStops(Vec<(StopPoint, Arc<StopSignal>)>);

impl CallStops {
    /// Holds the call at this point until its stops release it. Returns `false` if its connection must be closed.
    pub(super) fn wait(&self, point: StopPoint) -> bool {
        self.0.iter().filter(|(at, _)| *at == point).all(|(_, signal)| signal.hold())
    }
}

impl ProxyBehavior {
    pub(super) fn set_fault(&mut self, method: &str, fault: Fault, calls_left: Option<usize>) {
        let fault = ActiveFault { fault, calls_left, first_responses: Arc::default() };
        self.faults.insert(method.to_owned(), fault);
    }

    pub(super) fn clear_faults(&mut self) {
        self.faults.clear();
    }

    pub(super) fn add_stop(
        &mut self,
        point: StopPoint,
        method: &str,
        nth: usize,
    ) -> Arc<StopSignal> {
        let signal = Arc::<StopSignal>::default();
        let (method, calls_left) = (method.to_owned(), nth.max(1));
        self.stops.push(PendingStop { point, method, calls_left, signal: signal.clone() });
        signal
    }

    pub(super) fn calls(&self) -> &[String] {
        &self.calls
    }

    /// Records a call, and returns the stops that hold it.
    pub(super) fn record_call(&mut self, method: &str) -> CallStops {
        self.calls.push(method.to_owned());
        let matches = |stop: &PendingStop| stop.method == method || stop.method == ANY_METHOD;
        for stop in self.stops.iter_mut().filter(|stop| matches(stop)) {
            stop.calls_left = stop.calls_left.saturating_sub(1);
        }
        let reached = self.stops.extract_if(.., |stop| stop.calls_left == 0);
        CallStops(reached.map(|stop| (stop.point, stop.signal)).collect())
    }

    /// The fault of this call. It is read after the call was held, so that a test can set a fault
    /// for a held call.
    pub(super) fn next_fault(&mut self, method: &str) -> Option<(Fault, Arc<FirstResponses>)> {
        [method, ANY_METHOD].into_iter().find_map(|name| self.take_fault(name))
    }

    fn take_fault(&mut self, name: &str) -> Option<(Fault, Arc<FirstResponses>)> {
        let active = self.faults.get_mut(name)?;
        if let Some(left) = &mut active.calls_left {
            *left = left.checked_sub(1)?;
        }
        Some((active.fault.clone(), active.first_responses.clone()))
    }
}
