use std::time::Duration;

/// How long to wait between tries: twice as long each time, and a random part of that.
///
/// What is waited is between half of the delay and all of it, so that those who failed together do
/// not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// No delay is longer.
    pub longest: Duration,
}

/// The delays of one series of failures.
#[derive(Debug)]
pub(crate) struct Delays {
    backoff: Backoff,
    next: Duration,
    rng: fastrand::Rng,
}

impl Backoff {
    /// The delays of one series of failures.
    pub(crate) fn delays(self, rng: fastrand::Rng) -> Delays {
        Delays { backoff: self, next: self.first.min(self.longest), rng }
    }

    pub(crate) fn is_zero(self) -> bool {
        self.first.is_zero() || self.longest.is_zero()
    }
}

impl Delays {
    /// The delay after one more failure.
    pub(crate) fn after_failure(&mut self) -> Duration {
        let delay = self.next;
        self.next = delay.saturating_mul(2).min(self.backoff.longest);
        let half = delay / 2;
        half + (delay - half).mul_f64(self.rng.f64())
    }

    /// The next failure is the first of a new series.
    pub(crate) fn reset(&mut self) {
        self.next = self.backoff.first.min(self.backoff.longest);
    }
}

/// Repeatable where there is a seed.
pub(crate) fn rng(seed: Option<u64>) -> fastrand::Rng {
    seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_begin_anew_after_a_reset() {
        let backoff =
            Backoff { first: Duration::from_millis(100), longest: Duration::from_millis(350) };
        let mut delays = backoff.delays(rng(Some(7)));
        let check = |delays: &mut Delays, whole: u64| {
            let (delay, whole) = (delays.after_failure(), Duration::from_millis(whole));
            assert!(whole / 2 <= delay && delay <= whole, "{delay:?} of {whole:?}");
        };
        [100, 200, 350, 350].into_iter().for_each(|whole| check(&mut delays, whole));
        delays.reset();
        check(&mut delays, 100);
    }
}
