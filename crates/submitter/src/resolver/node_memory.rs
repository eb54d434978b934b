use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Remembers which node received a batch. Beyond `limit` batches, the oldest is forgotten.
#[derive(Debug)]
pub(crate) struct NodeMemory {
    limit: usize,
    nodes: HashMap<Arc<str>, RememberedNode>,
    order: VecDeque<Arc<str>>,
}

#[derive(Debug, Clone, Copy)]
struct RememberedNode {
    node: usize,
    /// Whether the node accepted the batch. Otherwise the outcome was ambiguous.
    accepted: bool,
}

impl NodeMemory {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, nodes: HashMap::new(), order: VecDeque::new() }
    }

    pub(crate) fn node_of(&self, batch_header: &str) -> Option<usize> {
        self.nodes.get(batch_header).map(|remembered| remembered.node)
    }

    /// Remembers that the node accepted the batch, or may have. The first node stays, except that a
    /// node that accepted the batch replaces one that only may have.
    pub(crate) fn remember(&mut self, batch_header: &str, node: usize, accepted: bool) {
        if let Some(remembered) = self.nodes.get_mut(batch_header) {
            if accepted && !remembered.accepted {
                *remembered = RememberedNode { node, accepted };
            }
            return;
        }
        if self.limit == 0 {
            return;
        }
        if self.order.len() >= self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.nodes.remove(&oldest);
        }
        let key: Arc<str> = batch_header.into();
        self.order.push_back(Arc::clone(&key));
        self.nodes.insert(key, RememberedNode { node, accepted });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_node_that_accepted_a_batch_is_remembered() {
        let mut memory = NodeMemory::new(10);
        memory.remember("b", 1, false);
        memory.remember("b", 2, false);
        assert_eq!(memory.node_of("b"), Some(1));
        memory.remember("b", 2, true);
        memory.remember("b", 3, true);
        assert_eq!(memory.node_of("b"), Some(2));
    }

    #[test]
    fn oldest_batches_are_forgotten() {
        let mut memory = NodeMemory::new(2);
        for batch in ["a", "b", "a", "c"] {
            memory.remember(batch, 0, true);
        }
        let known = ["a", "b", "c"].map(|batch| memory.node_of(batch).is_some());
        assert_eq!(known, [false, true, true]);
        assert_eq!((memory.nodes.len(), memory.order.len()), (2, 2));
    }

    #[test]
    fn memory_with_limit_zero_remembers_nothing() {
        let mut memory = NodeMemory::new(0);
        memory.remember("a", 0, true);
        assert_eq!(memory.node_of("a"), None);
    }
}
