use std::time::Duration;

use grid_batch_core::queue::Backoff;

/// The delays of one series of failures, with jitter.
#[derive(Debug)]
pub struct Delays {
    backoff: Backoff,
    earlier: u32,
    rng: fastrand::Rng,
}

impl Delays {
    /// The delays of a new series.
    pub fn new(backoff: Backoff, rng: fastrand::Rng) -> Self {
        Self { backoff, earlier: 0, rng }
    }

    /// The delay after one more failure.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.backoff.delay(self.earlier, self.rng.f64());
        self.earlier = self.earlier.saturating_add(1);
        delay
    }

    /// Starts a new series.
    pub fn reset(&mut self) {
        self.earlier = 0;
    }
}

/// A random number generator; with a seed, its numbers are the same each time.
pub fn rng(seed: Option<u64>) -> fastrand::Rng {
    seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(delays: &mut Delays, whole: u64) {
        let (delay, whole) = (delays.next_delay(), Duration::from_millis(whole));
        assert!(whole / 2 <= delay && delay <= whole, "{delay:?} of {whole:?}");
    }

    #[test]
    fn delays_double_up_to_the_longest() {
        let backoff =
            Backoff { first: Duration::from_millis(100), longest: Duration::from_millis(350) };
        let mut delays = Delays::new(backoff, rng(Some(7)));
        [100, 200, 350, 350].into_iter().for_each(|whole| check(&mut delays, whole));
        delays.reset();
        check(&mut delays, 100);
    }

    #[test]
    fn no_delay_overflows() {
        let backoff = Backoff { first: Duration::MAX, longest: Duration::MAX };
        let mut delays = Delays::new(backoff, rng(Some(7)));
        assert!(delays.next_delay() >= Duration::MAX / 2);
        assert!(delays.next_delay() >= Duration::MAX / 2);
    }
}
