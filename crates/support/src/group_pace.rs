use std::time::{Duration, Instant};

/// Leaves time between calls of a store that work on all that has arrived, so that their groups grow
/// with load: one commit of twenty changes costs little more than one of two.
///
/// A call for a single item leaves no time, so that nothing waits for a group while there is little to
/// do.
#[derive(Debug)]
pub struct GroupPace {
    shortest: Duration,
    resume_at: Option<Instant>,
}

impl GroupPace {
    /// The time between two calls in durations of the first.
    const PARTS: u32 = 2;
    /// The longest time between two calls.
    const LONGEST: Duration = Duration::from_millis(8);

    /// A pace with at least this time after a call for several items.
    pub fn with_shortest(shortest: Duration) -> Self {
        Self { shortest: shortest.min(Self::LONGEST), resume_at: None }
    }

    /// A call for this many items that started then has ended now.
    pub fn ended(&mut self, started: Instant, items: usize) {
        let now = Instant::now();
        let duration = now.saturating_duration_since(started);
        let pause = (duration * Self::PARTS).clamp(self.shortest, Self::LONGEST);
        self.resume_at = (items > 1).then(|| now + pause);
    }

    /// When the next call may start. `None`: now.
    pub fn resume_at(&self) -> Option<Instant> {
        self.resume_at.filter(|time| Instant::now() < *time)
    }

    /// How long to wait until the next call may start.
    pub fn wait(&self) -> Duration {
        let now = Instant::now();
        self.resume_at.map_or(Duration::ZERO, |time| time.saturating_duration_since(now))
    }
}

impl Default for GroupPace {
    fn default() -> Self {
        Self::with_shortest(Duration::from_millis(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_is_followed_by_a_pause_that_is_bounded() {
        let mut pace = GroupPace::default();
        assert_eq!((pace.wait(), pace.resume_at()), (Duration::ZERO, None));
        let long_ago = Instant::now().checked_sub(Duration::from_mins(1)).unwrap();
        pace.ended(long_ago, 2);
        assert!(pace.wait() <= GroupPace::LONGEST);
        pace.ended(Instant::now(), 2);
        assert!(pace.resume_at().is_some(), "the shortest pause");
        pace.ended(long_ago, 1);
        assert_eq!(pace.wait(), Duration::ZERO, "there is no pause after a single item");
    }
}
