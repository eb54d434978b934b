use std::{hash::Hash, sync::Mutex};

use grid_batch_support::{BoundedMap, lock};

/// A value that this process remembers for each key, by default `V::default()`. The oldest keys are forgotten.
#[derive(Debug)]
pub(crate) struct Memory<K, V>(Mutex<BoundedMap<K, V>>);

impl<K: Clone + Eq + Hash, V: Default> Memory<K, V> {
    /// Reads or changes the value of a key.
    pub(crate) fn with<T>(&self, key: &K, change: impl FnOnce(&mut V) -> T) -> T {
        change(lock(&self.0).get_or_insert_with(key, V::default))
    }

    /// Replaces the value of a key, and returns whether it changed, so that a change is logged once.
    pub(crate) fn changes(&self, key: &K, value: V) -> bool
    where
        V: PartialEq,
    {
        self.with(key, |remembered| {
            let has_changed = *remembered != value;
            *remembered = value;
            has_changed
        })
    }
}

impl<K: Clone + Eq + Hash, V> Default for Memory<K, V> {
    fn default() -> Self {
        const CAPACITY: usize = 10_000;
        Self(Mutex::new(BoundedMap::new(CAPACITY)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_changes_once_until_it_is_another() {
        let memory = Memory::default();
        let changes = [false, true, true, false, true].map(|value| memory.changes(&"a", value));
        assert_eq!(changes, [false, true, false, true, true]);
        assert!(memory.changes(&"b", true), "each key has its own value");
    }
}
