use std::time::Duration;

use grid_batch_core::MonotonicTime;

/// Limits the number of requests per second, however many services there are.
///
/// After a short pause, up to a tenth of a second's requests may be sent at once.
#[derive(Debug)]
pub(crate) struct RequestBudget {
    /// The time between two requests if they are spread evenly.
    spacing: Duration,
    /// The number of requests that may be sent at once after a pause.
    burst: u32,
    /// When all requests so far would have been sent if they were spread evenly.
    spent_until: MonotonicTime,
}

impl RequestBudget {
    pub(crate) fn new(requests_per_second: u32) -> Self {
        Self {
            spacing: Duration::from_secs(1) / requests_per_second.max(1),
            burst: (requests_per_second / 10).max(1),
            spent_until: MonotonicTime::default(),
        }
    }

    /// How many requests may be sent now.
    pub(crate) fn available(&self, now: MonotonicTime) -> usize {
        let spent = self.spent_until.since(now).as_nanos();
        let spent = spent.div_ceil(self.spacing.as_nanos().max(1));
        let available = u128::from(self.burst).saturating_sub(spent);
        usize::try_from(available).unwrap_or(usize::MAX)
    }

    /// Records that requests are sent.
    pub(crate) fn spend(&mut self, requests: usize, now: MonotonicTime) {
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        let start = self.spent_until.max(now);
        self.spent_until = start.plus(self.spacing.saturating_mul(requests));
    }

    /// Returns requests to the budget, up to a full burst.
    pub(crate) fn refund(&mut self, requests: u32, now: MonotonicTime) {
        let left = self.spent_until.since(now);
        self.spent_until = now.plus(left.saturating_sub(self.spacing.saturating_mul(requests)));
    }

    /// How long to wait until at least half a burst is available, so that one read of the store serves several
    /// requests.
    pub(crate) fn wait(&self, now: MonotonicTime) -> Duration {
        if self.available(now) > 0 {
            return Duration::ZERO;
        }
        let left = self.burst - self.burst.div_ceil(2);
        self.spent_until.since(now).saturating_sub(self.spacing.saturating_mul(left))
    }

    /// How long requests for this many services take.
    pub(crate) fn time_for(&self, services: usize) -> Duration {
        self.spacing.saturating_mul(u32::try_from(services).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_millis(millis))
    }

    #[test]
    fn requests_of_a_second_are_limited() {
        let mut budget = RequestBudget::new(50);
        let mut sent = 0;
        for millis in 0..10_000 {
            let now = at(1_000_000 + millis);
            let available = budget.available(now);
            budget.spend(available, now);
            sent += available;
        }
        assert!((499..=505).contains(&sent), "{sent}");
    }

    #[test]
    fn wait_ends_when_half_a_burst_is_available() {
        let mut budget = RequestBudget::new(100);
        let now = at(5_000);
        assert_eq!((budget.available(now), budget.wait(now)), (10, Duration::ZERO));
        budget.spend(10, now);
        let wait = budget.wait(now);
        assert_eq!((budget.available(now), wait), (0, Duration::from_millis(50)));
        assert_eq!(budget.available(now.plus(wait)), 5);
    }

    #[test]
    fn refunded_requests_may_be_sent_again() {
        let mut budget = RequestBudget::new(100);
        let now = at(5_000);
        budget.spend(10, now);
        budget.refund(4, now);
        assert_eq!(budget.available(now), 4);
        budget.refund(100, now);
        assert_eq!(budget.available(now), 10, "not more than a burst");
    }

    #[test]
    fn one_request_a_second_is_possible() {
        let mut budget = RequestBudget::new(1);
        budget.spend(1, at(5_000));
        assert_eq!(budget.wait(at(5_400)), Duration::from_millis(600));
        assert_eq!([5_999, 6_000].map(|millis| budget.available(at(millis))), [0, 1]);
    }
}
