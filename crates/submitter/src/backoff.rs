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

impl Backoff {
    /// The delays of one series of failures.
    pub(crate) fn delays(self, rng: fastrand::Rng) -> Delays {
        Delays { next: self.first.min(self.longest), longest: self.longest, rng }
    }
}

/// The delays of one series of failures.
#[derive(Debug)]
pub(crate) struct Delays {
    next: Duration,
    longest: Duration,
    rng: fastrand::Rng,
}

impl Delays {
    /// The delay after one more failure.
    pub(crate) fn after_failure(&mut self) -> Duration {
        let delay = self.next;
        self.next = delay.saturating_mul(2).min(self.longest);
        let half = delay / 2;
        half + (delay - half).mul_f64(self.rng.f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_are_random_in_their_upper_half() {
        let backoff =
            Backoff { first: Duration::from_millis(100), longest: Duration::from_millis(350) };
        let mut delays = backoff.delays(fastrand::Rng::with_seed(7));
        for whole in [100, 200, 350, 350] {
            let delay = delays.after_failure();
            let whole = Duration::from_millis(whole);
            assert!(whole / 2 <= delay && delay <= whole, "{delay:?} of {whole:?}");
        }
    }

    #[test]
    fn no_delay_overflows() {
        let backoff = Backoff { first: Duration::MAX, longest: Duration::MAX };
        let mut delays = backoff.delays(fastrand::Rng::with_seed(7));
        assert!(delays.after_failure() >= Duration::MAX / 2);
        assert!(delays.after_failure() >= Duration::MAX / 2);
    }
}
