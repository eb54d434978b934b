use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    slice,
    sync::Mutex,
};

use grid_batch_support::{BoundedMap, lock};

/// Which nodes a service has, and which of them it uses. Nodes are named by their positions in the pool.
pub(crate) struct Routes {
    /// The nodes of services without one of their own, in the order of the configuration.
    pub(crate) shared: Vec<usize>,
    /// Whether services begin with different ones of the shared nodes, chosen by a hash of their ids.
    pub(crate) is_spread: bool,
    /// The nodes of services that have one of their own.
    pub(crate) own: HashMap<String, usize>,
    /// The other nodes of the circuits of services.
    pub(crate) peers: HashMap<String, Vec<usize>>,
    pub(crate) state: Mutex<RouteState>,
}

pub(crate) struct RouteState {
    /// The present node of each service that has left the node it began with.
    moved: HashMap<String, usize>,
    received: BoundedMap<String, Received>,
}

/// Which node received a batch.
struct Received {
    node: usize,
    /// Whether it certainly received the batch. Otherwise it may have.
    is_certain: bool,
}

impl Routes {
    /// The nodes that batches of a service may be sent to.
    pub(crate) fn candidates(&self, service: &str) -> &[usize] {
        self.own.get(service).map_or(&self.shared[..], slice::from_ref)
    }

    /// The node that the service uses now.
    pub(crate) fn current(&self, service: &str) -> Option<usize> {
        lock(&self.state).moved.get(service).copied().or_else(|| self.first(service))
    }

    /// The node with which a service begins, in every process with the same nodes.
    fn first(&self, service: &str) -> Option<usize> {
        let candidates = self.candidates(service);
        let at = match candidates.len() {
            count @ 2.. if self.is_spread => {
                let mut hasher = DefaultHasher::new();
                service.hash(&mut hasher);
                usize::try_from(hasher.finish() % count as u64).unwrap_or_default()
            }
            _ => 0,
        };
        candidates.get(at).copied()
    }

    /// The candidates, beginning with the one that the service uses, and wrapping around.
    pub(crate) fn in_turn(&self, service: &str) -> impl Iterator<Item = usize> + Clone {
        let candidates = self.candidates(service);
        let current = self.current(service);
        let start = candidates.iter().position(|node| Some(*node) == current).unwrap_or(0);
        candidates.iter().copied().cycle().skip(start).take(candidates.len())
    }

    /// Makes the service use this node from now on.
    pub(crate) fn use_node(&self, service: &str, node: usize) {
        if self.current(service) == Some(node) {
            return;
        }
        let is_first = self.first(service) == Some(node);
        let moved = &mut lock(&self.state).moved;
        if is_first {
            moved.remove(service)
        } else {
            moved.insert(service.to_owned(), node)
        };
    }

    /// The first node that certainly received the batch; if there is none, the first that may have.
    pub(crate) fn received(&self, batch_id: &str) -> Option<usize> {
        lock(&self.state).received.get(&batch_id.to_owned()).map(|received| received.node)
    }

    /// Records that the node received the batch, or may have.
    pub(crate) fn set_received(&self, batch_id: &str, node: usize, is_certain: bool) {
        let new = || Received { node, is_certain };
        let mut state = lock(&self.state);
        let received = state.received.get_or_insert_with(&batch_id.to_owned(), new);
        if is_certain && !received.is_certain {
            *received = new();
        }
    }
}

impl Default for RouteState {
    fn default() -> Self {
        /// For how many batches the node is remembered.
        const REMEMBERED: usize = 100_000;
        Self { moved: HashMap::new(), received: BoundedMap::new(REMEMBERED) }
    }
}
