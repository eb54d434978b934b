use std::time::{Duration, Instant};

/// A pause after each group of items that is written to or read from a store. It makes groups grow with load: a commit
/// of twenty changes costs little more than one of two.
///
/// A group of a single item is followed by no pause, so nothing waits while there is little to do.
#[derive(Debug)]
pub struct GroupPause {
    shortest: Duration,
    resume_at: Option<Instant>,
}

impl GroupPause {
    /// The pause as a multiple of the time that the group took.
    const FACTOR: u32 = 2;
    /// The longest pause.
    const LONGEST: Duration = Duration::from_millis(8);

    /// Pauses for at least this time after a group of several items.
    pub fn with_shortest(shortest: Duration) -> Self {
        Self { shortest: shortest.min(Self::LONGEST), resume_at: None }
    }

    /// Records that a group of this many items, started at `started`, has ended now.
    pub fn ended(&mut self, started: Instant, items: usize) {
        let now = Instant::now();
        let duration = now.saturating_duration_since(started);
        let pause = (duration * Self::FACTOR).clamp(self.shortest, Self::LONGEST);
        self.resume_at = (items > 1).then(|| now + pause);
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

impl Default for GroupPause {
    fn default() -> Self {
        Self::with_shortest(Duration::from_millis(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_is_followed_by_a_pause_that_is_bounded() {
        let mut pause = GroupPause::default();
        assert_eq!((pause.wait(), pause.resume_at()), (Duration::ZERO, None));
        let long_ago = Instant::now().checked_sub(Duration::from_mins(1)).unwrap();
        pause.ended(long_ago, 2);
        assert!(pause.wait() <= GroupPause::LONGEST);
        pause.ended(Instant::now(), 2);
        assert!(pause.resume_at().is_some(), "the shortest pause");
        pause.ended(long_ago, 1);
        assert_eq!(pause.wait(), Duration::ZERO, "there is no pause after a single item");
    }
}
