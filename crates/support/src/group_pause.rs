use std::time::{Duration, Instant};

/// A pause after each group of items that is written to or read from a store. It makes groups grow with load: a commit
/// of twenty changes costs little more than one of two.
///
/// A group of a single item is followed by no pause, so nothing waits while there is little to do, unless the ledger
/// takes so long for a batch that the pause does not matter.
#[derive(Debug)]
pub struct GroupPause {
    shortest: Duration,
    /// The pause as a part of the time that the ledger takes, and its limit.
    of_ledger: (u32, Duration),
    resume_at: Option<Instant>,
}

impl GroupPause {
    /// The pause as a multiple of the time that the group took.
    const FACTOR: u32 = 2;
    /// The longest pause because of the time that a group took.
    const LONGEST: Duration = Duration::from_millis(8);

    /// For what a batch waits for: it may cost a batch a twentieth of the time that the ledger takes, at most 10 ms.
    pub const BRIEF: Self = Self::new(Duration::from_millis(2), 20, Duration::from_millis(10));
    /// For what only follows a batch: a tenth of the time that the ledger takes, at most 50 ms.
    pub const LONG: Self = Self::new(Duration::from_millis(5), 10, Duration::from_millis(50));

    const fn new(shortest: Duration, part: u32, longest: Duration) -> Self {
        Self { shortest, of_ledger: (part, longest), resume_at: None }
    }

    /// Records that a group of this many items, started at `started`, has ended now. `ledger_time` is how
    /// long the ledger takes for a batch, if that is known.
    pub fn ended(&mut self, started: Instant, items: usize, ledger_time: Option<Duration>) {
        let now = Instant::now();
        let (part, longest) = self.of_ledger;
        let of_ledger = ledger_time.map_or(Duration::ZERO, |time| (time / part).min(longest));
        let duration = now.saturating_duration_since(started);
        let of_group = (duration * Self::FACTOR).clamp(self.shortest, Self::LONGEST);
        let pause = if items > 1 { of_ledger.max(of_group) } else { of_ledger };
        self.resume_at = (!pause.is_zero()).then(|| now + pause);
    }

    /// When the next group may start. `None`: now.
    pub fn resume_at(&self) -> Option<Instant> {
        self.resume_at.filter(|time| Instant::now() < *time)
    }

    /// How long to wait until the next group may start.
    pub fn wait(&self) -> Duration {
        let now = Instant::now();
        self.resume_at.map_or(Duration::ZERO, |time| time.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_is_followed_by_a_pause_that_is_bounded() {
        let mut pause = GroupPause::BRIEF;
        assert_eq!((pause.wait(), pause.resume_at()), (Duration::ZERO, None));
        let long_ago = Instant::now().checked_sub(Duration::from_mins(1)).unwrap();
        pause.ended(long_ago, 2, None);
        assert!(pause.wait() <= GroupPause::LONGEST);
        pause.ended(Instant::now(), 2, None);
        assert!(pause.resume_at().is_some(), "the shortest pause");
        pause.ended(long_ago, 1, None);
        assert_eq!(pause.wait(), Duration::ZERO, "there is no pause after a single item");
    }

    #[test]
    fn slow_ledger_allows_a_pause_after_a_single_item() {
        let after = |ledger_time| {
            let mut pause = GroupPause::BRIEF;
            pause.ended(Instant::now(), 1, Some(ledger_time));
            pause.wait()
        };
        assert!(after(Duration::from_millis(4)) <= Duration::from_micros(200));
        let slow = after(Duration::from_secs(60));
        assert!((Duration::from_millis(5)..=Duration::from_millis(10)).contains(&slow));
    }
}
