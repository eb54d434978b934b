use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
};

/// A map of so many entries: those that were made first are forgotten first.
pub(crate) struct Recent<K, V> {
    limit: usize,
    entries: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K: Clone + Eq + Hash, V> Recent<K, V> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), entries: HashMap::new(), order: VecDeque::new() }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    /// The entry of this key; where there is none, this one is made.
    pub(crate) fn entry(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        if !self.entries.contains_key(key) {
            self.make_room();
            self.order.push_back(key.clone());
        }
        self.entries.entry(key.clone()).or_insert_with(make)
    }

    fn make_room(&mut self) {
        if self.order.len() >= self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_first_is_forgotten_first_however_often_it_comes_again() {
        let mut recent = Recent::new(2);
        for key in ["a", "b", "a", "c"] {
            *recent.entry(&key, || 0) += 1;
        }
        assert_eq!(["a", "b", "c"].map(|key| recent.get(&key).copied()), [None, Some(1), Some(1)]);
        assert_eq!((recent.entries.len(), recent.order.len()), (2, 2));
    }

    #[test]
    fn an_entry_is_made_once() {
        let mut recent = Recent::new(2);
        *recent.entry(&"a", || 1) += 1;
        assert_eq!(*recent.entry(&"a", || 9), 2);
    }
}
