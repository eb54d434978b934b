use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use grid_batch_core::{MonotonicTime, ServiceId};

/// Services that wait for a place, in order, and those whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Turns {
    order: VecDeque<ServiceId>,
    /// The same as in `order`.
    waiting: HashSet<ServiceId>,
    /// Services whose turn it is, and since when. A place is kept free for each.
    called: HashMap<ServiceId, MonotonicTime>,
}

/// A service that was called and does not ask within this time loses its turn.
const TURN_LIMIT: Duration = Duration::from_secs(2);

/// The greatest number of services that wait. A further one is found by the queue's own search.
const MOST_WAITING: usize = 100_000;

impl Turns {
    /// How many services were called and have not asked yet.
    pub(super) fn called(&self) -> usize {
        self.called.len()
    }

    /// Whether the service waits for its turn.
    pub(super) fn waits(&self, service: &ServiceId) -> bool {
        self.waiting.contains(service)
    }

    /// Ends the turn of a service, which has asked. Returns whether it was its turn.
    pub(super) fn take(&mut self, service: &ServiceId) -> bool {
        self.called.remove(service).is_some()
    }

    /// Has the service wait. One whose turn it was comes first.
    pub(super) fn wait(&mut self, service: &ServiceId, was_called: bool) {
        if self.waiting.len() >= MOST_WAITING || !self.waiting.insert(service.clone()) {
            return;
        }
        match was_called {
            true => self.order.push_front(service.clone()),
            false => self.order.push_back(service.clone()),
        }
    }

    /// The service does not want a place any more.
    pub(super) fn leave(&mut self, service: &ServiceId) {
        if self.waiting.remove(service) {
            self.order.retain(|other| other != service);
        }
        self.called.remove(service);
    }

    /// Calls a service that does not wait in the order.
    pub(super) fn call(&mut self, service: &ServiceId, now: MonotonicTime) {
        self.called.insert(service.clone(), now);
    }

    /// Calls the first waiting service for which `may_take` holds. The others stay.
    pub(super) fn call_next(
        &mut self,
        now: MonotonicTime,
        may_take: impl Fn(&ServiceId) -> bool,
    ) -> Option<ServiceId> {
        let position = self.order.iter().position(may_take)?;
        let service = self.order.remove(position)?;
        self.waiting.remove(&service);
        self.called.insert(service.clone(), now);
        Some(service)
    }

    /// Ends the turns of services that have not asked in time. Returns these.
    pub(super) fn end_turns(&mut self, now: MonotonicTime) -> Vec<ServiceId> {
        let is_over = |_: &ServiceId, since: &mut MonotonicTime| now.since(*since) >= TURN_LIMIT;
        self.called.extract_if(is_over).map(|(service, _)| service).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str) -> ServiceId {
        name.parse().unwrap()
    }

    fn now() -> MonotonicTime {
        MonotonicTime::default()
    }

    #[test]
    fn services_are_called_in_order() {
        let mut turns = Turns::default();
        for name in ["a", "b", "a", "c"] {
            turns.wait(&service(name), false);
        }
        turns.wait(&service("first"), true);
        let not_b = |id: &ServiceId| id.as_str() != "b";
        let mut called = std::iter::from_fn(|| turns.call_next(now(), not_b));
        let called: Vec<_> = called.by_ref().map(|id| id.to_string()).collect();
        assert_eq!(called, ["first", "a", "c"]);
        assert_eq!(turns.called(), 3);
        assert!(turns.take(&service("a")) && !turns.take(&service("a")));
        assert_eq!(turns.call_next(now(), |_| true), Some(service("b")));
    }

    #[test]
    fn service_that_does_not_ask_loses_its_turn() {
        let mut turns = Turns::default();
        turns.call(&service("a"), now());
        assert!(turns.end_turns(now().plus(TURN_LIMIT / 2)).is_empty());
        assert_eq!(turns.end_turns(now().plus(TURN_LIMIT)), [service("a")]);
        assert_eq!(turns.called(), 0);
    }

    #[test]
    fn service_that_leaves_is_not_called() {
        let mut turns = Turns::default();
        turns.wait(&service("a"), false);
        turns.call(&service("b"), now());
        turns.leave(&service("a"));
        turns.leave(&service("b"));
        assert_eq!((turns.call_next(now(), |_| true), turns.called()), (None, 0));
    }
}
