use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};

use super::FaultProxy;
use crate::{Fault, stop::Gate};

/// What was ordered, and what was called.
#[derive(Debug, Default)]
pub(super) struct Desk {
    orders: HashMap<String, Order>,
    stops: Vec<Waiting>,
    log: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Before,
    After,
}

#[derive(Debug)]
struct Order {
    fault: Fault,
    left: Option<usize>,
    memory: Arc<Memory>,
}

#[derive(Debug)]
struct Waiting {
    moment: Moment,
    method: String,
    left: usize,
    gate: Arc<Gate>,
}

/// The first answer to each request.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<String, Value>>);

impl Memory {
    /// What was answered first, or is answered now, to the very same.
    pub(super) fn first(&self, call: &Value, ask: impl FnOnce() -> Option<Value>) -> Option<Value> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = json!([call["method"], call["params"]]).to_string();
        let mut answer = match answers.entry(asked) {
            Entry::Occupied(first) => first.get().clone(),
            Entry::Vacant(place) => place.insert(ask()?).clone(),
        };
        answer["id"] = call["id"].clone();
        Some(answer)
    }
}

/// Where one call is to be held.
#[derive(Debug)]
pub(super) struct Gates(Vec<(Moment, Arc<Gate>)>);

impl Gates {
    /// Holds the call where it is to be held, and says whether it may go on.
    pub(super) fn pass(&self, moment: Moment) -> bool {
        self.0.iter().filter(|(at, _)| *at == moment).all(|(_, gate)| gate.pass())
    }
}

impl Desk {
    pub(super) fn set(&mut self, method: &str, fault: Fault, left: Option<usize>) {
        self.orders.insert(method.to_owned(), Order { fault, left, memory: Arc::default() });
    }

    pub(super) fn clear(&mut self) {
        self.orders.clear();
    }

    pub(super) fn stop(&mut self, moment: Moment, method: &str, nth: usize) -> Arc<Gate> {
        let gate = Arc::<Gate>::default();
        let (method, left) = (method.to_owned(), nth.max(1));
        self.stops.push(Waiting { moment, method, left, gate: gate.clone() });
        gate
    }

    pub(super) fn log(&self) -> &[String] {
        &self.log
    }

    /// Notes a call, and says where it is to be held.
    pub(super) fn note(&mut self, method: &str) -> Gates {
        self.log.push(method.to_owned());
        let meant = |stop: &Waiting| stop.method == method || stop.method == FaultProxy::ANY;
        for stop in self.stops.iter_mut().filter(|stop| meant(stop)) {
            stop.left = stop.left.saturating_sub(1);
        }
        let reached = self.stops.extract_if(.., |stop| stop.left == 0);
        Gates(reached.map(|stop| (stop.moment, stop.gate)).collect())
    }

    /// The fault that a call meets. It is asked for when the call is no longer held, so that a test
    /// can order one meanwhile.
    pub(super) fn fault_for(&mut self, method: &str) -> Option<(Fault, Arc<Memory>)> {
        [method, FaultProxy::ANY].into_iter().find_map(|name| self.take(name))
    }

    fn take(&mut self, name: &str) -> Option<(Fault, Arc<Memory>)> {
        let order = self.orders.get_mut(name)?;
        if let Some(left) = &mut order.left {
            *left = left.checked_sub(1)?;
        }
        Some((order.fault.clone(), order.memory.clone()))
    }
}
