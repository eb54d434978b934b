use std::time::Duration;

/// Exponential backoff: each delay is twice the last one.
///
/// With jitter, the delay is between half of that and all of it, so that callers that failed together do not retry
/// together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// The limit on delays.
    pub longest: Duration,
}

/// The delays of one series of failures, with jitter.
#[derive(Debug)]
pub struct Delays {
    backoff: Backoff,
    earlier: u32,
    rng: fastrand::Rng,
}

impl Backoff {
    /// The delay without jitter after `earlier` failures and one more.
    pub fn whole_delay(self, earlier: u32) -> Duration {
        self.first.saturating_mul(2_u32.saturating_pow(earlier)).min(self.longest)
    }

    /// The delay with jitter after `earlier` failures and one more.
    pub fn delay(self, earlier: u32, rng: &mut fastrand::Rng) -> Duration {
        let whole = self.whole_delay(earlier);
        let half = whole / 2;
        half + (whole - half).mul_f64(rng.f64())
    }

    /// The delays of one series of failures, with jitter.
    pub fn delays(self, rng: fastrand::Rng) -> Delays {
        Delays { backoff: self, earlier: 0, rng }
    }

    /// Whether all delays are zero.
    pub fn is_zero(self) -> bool {
        self.first.is_zero() || self.longest.is_zero()
    }
}

impl Delays {
    /// The delay after another failure.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.backoff.delay(self.earlier, &mut self.rng);
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
        let mut delays = backoff.delays(rng(Some(7)));
        [100, 200, 350, 350].into_iter().for_each(|whole| check(&mut delays, whole));
        delays.reset();
        check(&mut delays, 100);
    }

    #[test]
    fn whole_delays_have_no_jitter() {
        let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
        for (earlier, seconds) in [(0, 1), (1, 2), (4, 16), (5, 30), (31, 30), (u32::MAX, 30)] {
            assert_eq!(backoff.whole_delay(earlier), Duration::from_secs(seconds), "{earlier}");
        }
    }

    #[test]
    fn no_delay_overflows() {
        let backoff = Backoff { first: Duration::MAX, longest: Duration::MAX };
        let mut delays = backoff.delays(rng(Some(7)));
        assert!(delays.next_delay() >= Duration::MAX / 2);
        assert!(delays.next_delay() >= Duration::MAX / 2);
    }
}
