//! What chance decides: the same for the same seed, for each troublemaker by itself.

use std::{ops::Range, time::Duration};

use fastrand::Rng;

pub struct Dice(Rng);

impl Dice {
    /// The dice of the troublemaker of this number.
    pub fn of(seed: u64, troublemaker: u64) -> Self {
        Self(Rng::with_seed(seed ^ troublemaker.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    pub fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.0.u64(range))
    }

    pub fn number(&mut self, range: Range<usize>) -> usize {
        self.0.usize(range)
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.0.usize(..times) == 0
    }
}

/// Deeds in an order that chance decides; none comes again before all others have come.
pub struct Deck<T> {
    deeds: Vec<T>,
    left: Vec<T>,
}

impl<T: Copy> Deck<T> {
    /// The first deed comes first.
    pub fn new(deeds: &[T]) -> Self {
        Self { deeds: deeds.to_vec(), left: deeds[..1].to_vec() }
    }

    pub fn draw(&mut self, dice: &mut Dice) -> T {
        if self.left.is_empty() {
            self.left.clone_from(&self.deeds);
            dice.0.shuffle(&mut self.left);
        }
        self.left.pop().unwrap()
    }
}
