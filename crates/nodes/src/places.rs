use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    sync::Mutex,
};

use grid_batch_core::{Admission, ServiceId, TakenBatch};
use grid_batch_support::lock;

use crate::NodePool;

/// Shares the places of a submitter among its nodes, so that one that is slow or hangs does not take
/// them all.
///
/// A node has at most as many places as are free, and at most its limit: one busy node gets a half of all
/// places, two get a third each, and there are always some for another one. A service has at most one
/// place. Services of a node without a free place wait in order, without one, and are woken when there is
/// one. What is waiting is not marked as submitted.
///
/// It is for services that have one node each.
pub struct NodePlaces {
    pool: NodePool,
    places: usize,
    node_limit: usize,
    wake: Box<dyn Fn(ServiceId) + Send + Sync>,
    state: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    /// The node of each service that has a place.
    taken: HashMap<ServiceId, usize>,
    nodes: HashMap<usize, PlacesOfNode>,
}

#[derive(Default)]
struct PlacesOfNode {
    taken: usize,
    /// Services that wait for a place, in order.
    waiting: VecDeque<ServiceId>,
    /// The same as in `waiting`.
    waits: HashSet<ServiceId>,
    /// Services whose turn it is: they were woken, or they put their place back.
    called: HashSet<ServiceId>,
    /// Services that have a place and asked for another one.
    again: HashSet<ServiceId>,
}

/// The greatest number of services that wait for a place at one node. A further one is found by the
/// queue's own search.
const MOST_WAITING: usize = 100_000;

impl NodePlaces {
    /// Shares `places` among the nodes of `pool`, at most `node_limit` for each. `wake` wakes a
    /// service in the queue; it must return quickly.
    pub fn new(
        pool: NodePool,
        places: usize,
        node_limit: usize,
        wake: impl Fn(ServiceId) + Send + Sync + 'static,
    ) -> Self {
        Self { pool, places, node_limit, wake: Box::new(wake), state: Mutex::default() }
    }
}

impl Admission for NodePlaces {
    fn admit(&self, service_id: &ServiceId, wanted: usize) -> usize {
        usize::from(self.admit_one(service_id)).min(wanted)
    }

    fn taken(&self, _: &ServiceId, _: &[&TakenBatch]) {}

    fn release(&self, service_id: &ServiceId, _: usize) {
        self.release_place(service_id);
    }

    /// Those that wait are called when the service that put its place back has had its turn, or when
    /// another place is returned.
    fn put_back(&self, service_id: &ServiceId, _: usize) {
        let mut state = lock(&self.state);
        let Some(index) = state.taken.remove(service_id) else { return };
        if let Some(node) = state.nodes.get_mut(&index) {
            node.taken = node.taken.saturating_sub(1);
            node.again.remove(service_id);
            node.called.insert(service_id.clone());
        }
    }

    fn given_back(&self, batch: &TakenBatch) {
        self.release_place(&batch.service_id);
    }

    fn submission_ended(&self, service_id: &ServiceId) {
        self.release_place(service_id);
    }
}

impl NodePlaces {
    /// Whether the service gets a place now.
    fn admit_one(&self, service_id: &ServiceId) -> bool {
        let Some(index) = self.pool.only_node_of(service_id.as_str()) else { return true };
        let mut state = lock(&self.state);
        let limit = state.limit(self.places, self.node_limit);
        let has_place = state.taken.contains_key(service_id);
        let node = state.nodes.entry(index).or_default();
        if has_place {
            node.again.insert(service_id.clone());
            return false;
        }
        if node.is_turn_of(service_id, limit) {
            node.taken += 1;
            state.taken.insert(service_id.clone(), index);
            return true;
        }
        let next = if node.taken < limit { node.call_next() } else { None };
        drop(state);
        next.into_iter().for_each(|service| (self.wake)(service));
        false
    }

    fn release_place(&self, service_id: &ServiceId) {
        let woken = {
            let mut state = lock(&self.state);
            let Some(index) = state.taken.remove(service_id) else { return };
            let mut woken = Vec::new();
            if let Some(node) = state.nodes.get_mut(&index) {
                node.taken = node.taken.saturating_sub(1);
                woken.extend(node.again.take(service_id));
            }
            woken.extend(state.call_next(self.places, self.node_limit));
            woken
        };
        woken.into_iter().for_each(|service| (self.wake)(service));
    }
}

impl Places {
    /// How many places a node may have now.
    fn limit(&self, places: usize, node_limit: usize) -> usize {
        node_limit.min(places.saturating_sub(self.taken.len()))
    }

    /// The first waiting service of each node that may have one place more: more places are free for all.
    fn call_next(&mut self, places: usize, node_limit: usize) -> Vec<ServiceId> {
        let limit = self.limit(places, node_limit);
        let nodes = self.nodes.values_mut().filter(|node| node.taken < limit);
        let called = nodes.filter_map(PlacesOfNode::call_next).collect();
        self.nodes.retain(|_, node| node.is_used());
        called
    }
}

impl PlacesOfNode {
    /// Whether the service may take a place; otherwise it waits for its turn. It does not overtake those
    /// that wait.
    fn is_turn_of(&mut self, service_id: &ServiceId, limit: usize) -> bool {
        let was_called = self.called.remove(service_id);
        if self.taken < limit && (was_called || self.waiting.is_empty()) {
            return true;
        }
        if self.waiting.len() < MOST_WAITING && self.waits.insert(service_id.clone()) {
            match was_called {
                true => self.waiting.push_front(service_id.clone()),
                false => self.waiting.push_back(service_id.clone()),
            }
        }
        false
    }

    fn call_next(&mut self) -> Option<ServiceId> {
        let next = self.waiting.pop_front()?;
        self.waits.remove(&next);
        self.called.insert(next.clone());
        Some(next)
    }

    fn is_used(&self) -> bool {
        self.taken > 0 || !self.waiting.is_empty() || !self.called.is_empty()
    }
}

impl fmt::Debug for NodePlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodePlaces")
            .field("places", &self.places)
            .field("taken", &lock(&self.state).taken.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::NodePoolOptions;

    fn service(name: &str) -> ServiceId {
        format!("circuit::{name}").parse().unwrap()
    }

    /// Services whose names begin with the name of their node, and the services that were woken.
    fn limits(places: usize, node_limit: usize) -> (NodePlaces, Arc<Mutex<Vec<ServiceId>>>) {
        let names = ["a", "b", "c"].into_iter().flat_map(|node| {
            let names = (0..20).flat_map(move |n| [format!("{node}{n}"), format!("{node}{n:02}")]);
            names.map(move |n| (format!("circuit::{n}").parse().unwrap(), node.to_owned()))
        });
        let options = NodePoolOptions { services: names.collect(), ..NodePoolOptions::default() };
        let woken = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&woken);
        let wake = move |service| sink.lock().unwrap().push(service);
        (NodePlaces::new(NodePool::with_options(options), places, node_limit, wake), woken)
    }

    /// Whether the service gets a place.
    fn admit(limits: &NodePlaces, name: &str) -> bool {
        limits.admit(&service(name), 1) == 1
    }

    /// How many of 20 services of a node get a place.
    fn admitted(limits: &NodePlaces, node: &str) -> usize {
        (0..20).filter(|n| admit(limits, &format!("{node}{n}"))).count()
    }

    #[test]
    fn each_node_leaves_places_for_others() {
        let (limits, _) = limits(12, 100);
        assert_eq!(admitted(&limits, "a"), 6);
        assert_eq!(admitted(&limits, "b"), 3);
        assert_eq!(admitted(&limits, "c"), 2);
    }

    #[test]
    fn no_node_has_more_places_than_its_limit() {
        let (limits, _) = limits(100, 5);
        assert_eq!(admitted(&limits, "a"), 5);
        assert_eq!(admitted(&limits, "b"), 5);
    }

    #[test]
    fn returned_place_wakes_the_next_service_of_its_node() {
        let (limits, woken) = limits(2, 100);
        assert!(admit(&limits, "a0"));
        assert!(!admit(&limits, "a1") && !admit(&limits, "a2"));
        assert!(!admit(&limits, "a1"));
        limits.submission_ended(&service("a9"));
        assert!(woken.lock().unwrap().is_empty());
        limits.submission_ended(&service("a0"));
        assert_eq!(woken.lock().unwrap()[..], [service("a1")]);
        assert!(admit(&limits, "a1"));
    }

    #[test]
    fn services_of_a_node_take_turns() {
        let (limits, woken) = limits(4, 100);
        let mut served = HashMap::<ServiceId, usize>::new();
        // Every service asks again at once, those with the first names first.
        for _ in 0..200 {
            let called: Vec<_> = woken.lock().unwrap().drain(..).collect();
            let all = (0..20).map(|n| service(&format!("a{n:02}")));
            let asks: Vec<ServiceId> = called.into_iter().chain(all).collect();
            let admitted: Vec<_> = asks.into_iter().filter(|id| limits.admit(id, 1) == 1).collect();
            for service in admitted {
                limits.submission_ended(&service);
                *served.entry(service).or_default() += 1;
            }
        }
        let (least, most) = (served.values().min().unwrap(), served.values().max().unwrap());
        assert!(served.len() == 20 && *most <= 2 * least, "{served:?}");
    }

    #[test]
    fn woken_service_that_does_not_ask_blocks_no_other() {
        let (limits, woken) = limits(2, 100);
        assert!(admit(&limits, "a0"));
        assert!(!admit(&limits, "a1") && !admit(&limits, "a2"));
        limits.submission_ended(&service("a0"));
        assert_eq!(woken.lock().unwrap()[..], [service("a1")]);
        assert!(!admit(&limits, "a3"), "another one waits");
        assert_eq!(woken.lock().unwrap()[1..], [service("a2")]);
        assert!(admit(&limits, "a2"));
    }

    #[test]
    fn place_that_is_put_back_wakes_no_service() {
        let (limits, woken) = limits(10, 2);
        assert!(admit(&limits, "a0") && admit(&limits, "a1"));
        assert!(!admit(&limits, "a2") && !admit(&limits, "a3"));
        for _ in 0..3 {
            limits.put_back(&service("a1"), 1);
            assert!(admit(&limits, "a1"), "it keeps its turn");
        }
        assert!(woken.lock().unwrap().is_empty());
        limits.submission_ended(&service("a0"));
        limits.submission_ended(&service("a1"));
        assert_eq!(woken.lock().unwrap()[..], [service("a2"), service("a3")]);
    }

    #[test]
    fn service_that_put_its_place_back_blocks_no_other() {
        let (limits, woken) = limits(2, 100);
        assert!(admit(&limits, "a0"));
        assert!(!admit(&limits, "a1"));
        limits.put_back(&service("a0"), 1);
        assert!(!admit(&limits, "a2"), "another one waits");
        assert_eq!(woken.lock().unwrap()[..], [service("a1")]);
        assert!(admit(&limits, "a1"));
    }

    #[test]
    fn service_has_at_most_one_place() {
        let (limits, woken) = limits(10, 100);
        assert!(admit(&limits, "a0"));
        assert!(!admit(&limits, "a0"));
        limits.submission_ended(&service("a0"));
        assert_eq!(woken.lock().unwrap()[..], [service("a0")]);
        limits.submission_ended(&service("a0"));
        assert_eq!(admitted(&limits, "a"), 5);
    }

    #[test]
    fn service_without_an_address_needs_no_place() {
        let (limits, _) = limits(1, 1);
        assert!(admit(&limits, "elsewhere") && admit(&limits, "nowhere"));
        assert!(admit(&limits, "a0"));
    }

    #[test]
    fn only_place_is_for_any_node() {
        let (limits, woken) = limits(1, 100);
        assert!(admit(&limits, "a0"));
        assert!(!admit(&limits, "b0"));
        limits.submission_ended(&service("a0"));
        assert_eq!(woken.lock().unwrap()[..], [service("b0")]);
        assert!(admit(&limits, "b0"));
    }
}
