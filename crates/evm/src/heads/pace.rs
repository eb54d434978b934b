use std::time::Duration;

use tokio::time::Instant;

/// How often the nodes are asked for their latest block: several times per block, within limits.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    last_block: Option<Instant>,
}

impl Pace {
    const SHORTEST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(1);
    const LOOKS_FOR_A_BLOCK: u32 = 8;

    pub(super) fn new() -> Self {
        Self { interval: Self::SHORTEST, last_block: None }
    }

    /// Records that a new block was seen.
    pub(super) fn block(&mut self, now: Instant) {
        if let Some(last) = self.last_block.replace(now) {
            let between = now.duration_since(last) / Self::LOOKS_FOR_A_BLOCK;
            self.interval = between.clamp(Self::SHORTEST, Self::LONGEST);
        }
    }

    /// The time until the next look.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_follows_the_time_between_blocks() {
        let mut pace = Pace::new();
        let mut now = Instant::now();
        pace.block(now);
        assert_eq!(pace.interval(), Pace::SHORTEST);
        for (between, expected) in [(4_000, 500), (12_000, 1_000), (80, 50)] {
            now += Duration::from_millis(between);
            pace.block(now);
            assert_eq!(pace.interval(), Duration::from_millis(expected), "{between}");
        }
    }
}
