use std::collections::VecDeque;

/// The maximum number of waiting batches: ten times the average size of the last blocks.
#[derive(Debug)]
pub(super) struct QueueLimit {
    samples: VecDeque<usize>,
}

impl QueueLimit {
    const SAMPLES: usize = 5;
    const MULTIPLIER: usize = 10;
    const FIRST_SAMPLE: usize = 30;

    pub(super) fn new() -> Self {
        Self { samples: VecDeque::from([Self::FIRST_SAMPLE]) }
    }

    pub(super) fn get(&self) -> usize {
        Self::MULTIPLIER * self.average()
    }

    /// Records the size of a block. Small blocks count only while a queue remains, so that a ledger
    /// with little load keeps its limit.
    pub(super) fn update(&mut self, waiting: usize, consumed: usize) {
        let remainder = waiting.saturating_sub(consumed);
        let average = self.average();
        if consumed > 0 && (remainder > average || consumed > average) {
            self.samples.push_back(consumed);
            if self.samples.len() > Self::SAMPLES {
                self.samples.pop_front();
            }
        }
    }

    fn average(&self) -> usize {
        self.samples.iter().sum::<usize>() / self.samples.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_starts_at_300_and_shrinks_with_small_blocks() {
        let mut limit = QueueLimit::new();
        assert_eq!(limit.get(), 300);
        for _ in 0..5 {
            limit.update(100, 3);
        }
        assert_eq!(limit.get(), 30);
    }

    #[test]
    fn small_blocks_of_a_short_queue_do_not_count() {
        let mut limit = QueueLimit::new();
        limit.update(1, 1);
        limit.update(31, 1);
        assert_eq!(limit.get(), 300);
        limit.update(40, 40);
        assert_eq!(limit.get(), 350);
    }
}
