use std::time::Duration;

/// How long batches are usually under way until they are committed.
#[derive(Debug, Default)]
pub(super) struct UsualTime(Option<Duration>);

/// Batches that are under way for less than this are not overdue.
const SHORTEST: Duration = Duration::from_secs(2);
/// The same, while no batch was committed yet.
const UNKNOWN: Duration = Duration::from_secs(30);

impl UsualTime {
    /// A batch was committed after this time, which counts as no longer than that of an overdue batch.
    pub(super) fn committed_after(&mut self, elapsed: Duration) {
        self.0 = Some(match self.0 {
            None => elapsed,
            Some(usual) => (usual * 7 + elapsed.min(self.overdue_after())) / 8,
        });
    }

    /// A batch that is under way for longer than this is overdue if a later one was committed.
    pub(super) fn overdue_after(&self) -> Duration {
        self.0.map_or(UNKNOWN, |usual| SHORTEST.max(usual * 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overdue_is_much_longer_than_usual() {
        let mut usual = UsualTime::default();
        assert_eq!(usual.overdue_after(), UNKNOWN);
        for _ in 0..100 {
            usual.committed_after(Duration::from_secs(10));
        }
        assert_eq!(usual.overdue_after(), Duration::from_secs(40));
        usual.committed_after(Duration::from_hours(10));
        assert!(usual.overdue_after() < Duration::from_mins(1));
        (0..100).for_each(|_| usual.committed_after(Duration::from_millis(100)));
        assert_eq!(usual.overdue_after(), SHORTEST);
    }
}
