//! Random numbers that a seed determines, with a stream for each thread.

use std::{ops::Range, time::Duration};

use fastrand::Rng;

pub struct SeededRandom(Rng);

impl SeededRandom {
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(Rng::with_seed(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    pub fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.0.u64(range))
    }

    pub fn number(&mut self, range: Range<usize>) -> usize {
        self.0.usize(range)
    }

    /// True once in this many calls, on average.
    pub fn one_in(&mut self, calls: usize) -> bool {
        self.0.usize(..calls) == 0
    }
}

/// Items in random order. An item comes again only after all others have come.
pub struct ShuffledItems<T> {
    items: Vec<T>,
    remaining: Vec<T>,
}

impl<T: Copy> ShuffledItems<T> {
    /// The first item comes first.
    pub fn new(items: &[T]) -> Self {
        Self { items: items.to_vec(), remaining: items[..1].to_vec() }
    }

    pub fn next(&mut self, random: &mut SeededRandom) -> T {
        if self.remaining.is_empty() {
            self.remaining.clone_from(&self.items);
            random.0.shuffle(&mut self.remaining);
        }
        self.remaining.pop().unwrap()
    }
}
