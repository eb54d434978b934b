use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Which node a batch was given to, for so many batches: the oldest are forgotten.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: usize,
    nodes: HashMap<Arc<str>, Place>,
    order: VecDeque<Arc<str>>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    node: usize,
    /// The node said that it took the batch; otherwise it may have.
    certain: bool,
}

impl Memory {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, nodes: HashMap::new(), order: VecDeque::new() }
    }

    pub(crate) fn node_of(&self, batch_header: &str) -> Option<usize> {
        self.nodes.get(batch_header).map(|place| place.node)
    }

    /// The node took the batch, for certain or perhaps. Only certainty replaces what may have been;
    /// nothing replaces certainty.
    pub(crate) fn remember(&mut self, batch_header: &str, node: usize, certain: bool) {
        if let Some(place) = self.nodes.get_mut(batch_header) {
            if certain && !place.certain {
                *place = Place { node, certain };
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
        self.nodes.insert(key, Place { node, certain });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_node_that_certainly_took_a_batch_is_remembered() {
        let mut memory = Memory::new(10);
        memory.remember("b", 1, false);
        memory.remember("b", 2, false);
        assert_eq!(memory.node_of("b"), Some(1));
        memory.remember("b", 2, true);
        memory.remember("b", 3, true);
        assert_eq!(memory.node_of("b"), Some(2));
    }

    #[test]
    fn the_oldest_batches_are_forgotten() {
        let mut memory = Memory::new(2);
        for batch in ["a", "b", "a", "c"] {
            memory.remember(batch, 0, true);
        }
        let known = ["a", "b", "c"].map(|batch| memory.node_of(batch).is_some());
        assert_eq!(known, [false, true, true]);
        assert_eq!((memory.nodes.len(), memory.order.len()), (2, 2));
    }

    #[test]
    fn a_memory_without_room_remembers_nothing() {
        let mut memory = Memory::new(0);
        memory.remember("a", 0, true);
        assert_eq!(memory.node_of("a"), None);
    }
}
