use std::time::Duration;

/// Exponential backoff with jitter: each delay is twice the last one.
///
/// The delay that is used lies between half of that and all of it, so that callers that failed
/// together do not retry together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// No delay is longer.
    pub longest: Duration,
}

/// The delays of one series of failures.
#[derive(Debug)]
pub struct Delays {
    backoff: Backoff,
    next: Duration,
    rng: fastrand::Rng,
}

impl Backoff {
    /// The delays of one series of failures.
    pub fn delays(self, rng: fastrand::Rng) -> Delays {
        Delays { backoff: self, next: self.first.min(self.longest), rng }
    }

    /// Whether all delays are zero.
    pub fn is_zero(self) -> bool {
        self.first.is_zero() || self.longest.is_zero()
    }
}

impl Delays {
    /// The delay after one more failure.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = delay.saturating_mul(2).min(self.backoff.longest);
        let half = delay / 2;
        half + (delay - half).mul_f64(self.rng.f64())
    }

    /// Starts a new series.
    pub fn reset(&mut self) {
        self.next = self.backoff.first.min(self.backoff.longest);
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
        let mut delays = backoff.delays(rng(Some(7)));
        [100, 200, 350, 350].into_iter().for_each(|whole| check(&mut delays, whole));
        delays.reset();
        check(&mut delays, 100);
    }

    #[test]
    fn no_delay_overflows() {
        let backoff = Backoff { first: Duration::MAX, longest: Duration::MAX };
        let mut delays = backoff.delays(rng(Some(7)));
        assert!(delays.next_delay() >= Duration::MAX / 2);
        assert!(delays.next_delay() >= Duration::MAX / 2);
    }
}
