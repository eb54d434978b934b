use std::{
    collections::{BTreeMap, VecDeque},
    hash::{BuildHasher, Hash, RandomState},
    marker::PhantomData,
    mem::replace,
};

/// A map with a limited number of entries: a new entry evicts the oldest one.
///
/// It keeps a digest of each key, because many keys are long. With secret hash functions and 128 bits, the probability
/// that two of 100,000 keys have the same digest is less than 10^-28. A hash table would take twice the memory, because
/// it doubles when entries were removed.
#[derive(Debug)]
pub struct BoundedMap<K, V> {
    limit: usize,
    hash_functions: [RandomState; 2],
    entries: BTreeMap<Digest, V>,
    insertion_order: VecDeque<Digest>,
    keys: PhantomData<fn(K)>,
}

type Digest = [u64; 2];

impl<K: Hash, V> BoundedMap<K, V> {
    /// An empty map for this many entries, at least one.
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            hash_functions: [RandomState::new(), RandomState::new()],
            entries: BTreeMap::new(),
            insertion_order: VecDeque::new(),
            keys: PhantomData,
        }
    }

    /// The number of entries.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(&self.digest(key))
    }

    /// The value of a key, to change it.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(&self.digest(key))
    }

    /// The value of a key, which is made if there is none.
    pub fn get_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        let digest = self.digest(key);
        if !self.entries.contains_key(&digest) {
            self.make_room(digest);
        }
        self.entries.entry(digest).or_insert_with(make)
    }

    /// Whether the map has this key.
    pub fn contains(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Sets the value of a key, and returns the one before.
    pub fn set(&mut self, key: &K, value: V) -> Option<V> {
        let digest = self.digest(key);
        if let Some(present) = self.entries.get_mut(&digest) {
            return Some(replace(present, value));
        }
        self.make_room(digest);
        self.entries.insert(digest, value)
    }

    fn digest(&self, key: &K) -> Digest {
        self.hash_functions.each_ref().map(|function| function.hash_one(key))
    }

    /// Evicts the oldest entry if the map is full, and records that a new one follows.
    fn make_room(&mut self, new: Digest) {
        if self.insertion_order.len() >= self.limit
            && let Some(oldest) = self.insertion_order.pop_front()
        {
            self.entries.remove(&oldest);
        }
        self.insertion_order.push_back(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_entry_is_evicted_even_if_used_again() {
        let mut map = BoundedMap::new(2);
        for key in ["a", "b", "a", "c"] {
            *map.get_or_insert_with(&key, || 0) += 1;
        }
        assert_eq!(["a", "b", "c"].map(|key| map.get(&key).copied()), [None, Some(1), Some(1)]);
        assert_eq!((map.entries.len(), map.insertion_order.len()), (2, 2));
    }

    #[test]
    fn entry_is_inserted_once() {
        let mut map = BoundedMap::new(2);
        *map.get_or_insert_with(&"a", || 1) += 1;
        assert_eq!(*map.get_or_insert_with(&"a", || 9), 2);
    }

    #[test]
    fn value_that_is_set_replaces_the_one_before() {
        let mut map = BoundedMap::new(2);
        for (key, value) in [("a", 1), ("b", 2), ("a", 3), ("c", 4)] {
            let before = (key == "a" && value == 3).then_some(1);
            assert_eq!(map.set(&key, value), before);
        }
        assert_eq!(["a", "b", "c"].map(|key| map.contains(&key)), [false, true, true]);
        map.set(&"b", 5);
        assert_eq!(map.get(&"b"), Some(&5));
    }
}
