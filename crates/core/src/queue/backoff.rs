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

impl Backoff {
    /// The delay without jitter after `earlier` failures and one more.
    pub fn whole_delay(self, earlier: u32) -> Duration {
        self.first.saturating_mul(2_u32.saturating_pow(earlier)).min(self.longest)
    }

    /// The delay with jitter after `earlier` failures and one more. `random` is at least 0 and less than 1.
    pub fn delay(self, earlier: u32, random: f64) -> Duration {
        let whole = self.whole_delay(earlier);
        let half = whole / 2;
        half + (whole - half).mul_f64(random)
    }

    /// Whether all delays are zero.
    pub fn is_zero(self) -> bool {
        self.first.is_zero() || self.longest.is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_delays_have_no_jitter() {
        let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
        for (earlier, seconds) in [(0, 1), (1, 2), (4, 16), (5, 30), (31, 30), (u32::MAX, 30)] {
            assert_eq!(backoff.whole_delay(earlier), Duration::from_secs(seconds), "{earlier}");
        }
    }
}
