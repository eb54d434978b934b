/// The number of batches that may be under way at a ledger, which is found by trying.
///
/// It grows while batches are committed. A *window* is as many committed batches as may be under way. Until the ledger
/// is busy for the first time, the size doubles with each window. A busy answer lowers it by a quarter. Then it grows
/// by one with each window; after several windows without another busy answer, it grows by a quarter, because the limit
/// of the ledger may have grown.
#[derive(Debug, Clone)]
pub(super) struct WindowSize {
    largest: f64,
    size: f64,
    /// How many windows were committed since it was lowered.
    windows_since: f64,
    lowered: u64,
}

/// After this many windows without a busy answer, it grows faster.
const SLOW_WINDOWS: f64 = 8.0;

/// The factor by which it is lowered.
const KEPT: f64 = 0.75;

impl WindowSize {
    pub(super) fn new(initial: usize, largest: usize) -> Self {
        let largest = as_float(largest).max(1.0);
        let size = as_float(initial).clamp(1.0, largest);
        Self { largest, size, windows_since: 0.0, lowered: 0 }
    }

    /// How many batches may be under way, at least one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 1 and the largest size"
    )]
    pub(super) fn batches(&self) -> usize {
        self.size as usize
    }

    /// How often it was lowered. The caller keeps this number for each batch that is sent.
    pub(super) fn lowered(&self) -> u64 {
        self.lowered
    }

    /// Records that a batch was committed while `under_way` were under way. A window that is mostly unused does not
    /// grow, because nothing shows that the ledger would take more.
    pub(super) fn committed(&mut self, under_way: usize) {
        self.windows_since += 1.0 / self.size;
        if as_float(under_way) * 2.0 >= self.size {
            self.size = (self.size + self.step()).min(self.largest);
        }
    }

    /// By how much a committed batch raises it.
    fn step(&self) -> f64 {
        if self.lowered == 0 {
            1.0
        } else if self.windows_since < SLOW_WINDOWS {
            1.0 / self.size
        } else {
            0.25
        }
    }

    /// Records that the ledger was too busy for a batch while `under_way` were under way. Batches that were sent before
    /// the window was last lowered are ignored, because they show nothing new.
    pub(super) fn busy(&mut self, lowered_when_sent: u64, under_way: usize) {
        if lowered_when_sent < self.lowered {
            return;
        }
        self.size = (self.size.min(as_float(under_way)) * KEPT).max(1.0);
        self.windows_since = 0.0;
        self.lowered += 1;
    }
}

fn as_float(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn committed_batches_raise_it_to_the_largest_size() {
        let mut window = WindowSize::new(2, 20);
        (0..8).for_each(|_| window.committed(window.batches()));
        assert_eq!(window.batches(), 10);
        (0..100).for_each(|_| window.committed(window.batches()));
        assert_eq!(window.batches(), 20);
    }

    #[test]
    fn busy_answers_of_one_burst_lower_it_once() {
        let mut window = WindowSize::new(40, 100);
        let sent = window.lowered();
        (0..30).for_each(|answered| window.busy(sent, 40 - answered));
        assert_eq!(window.batches(), 30);
        window.busy(window.lowered(), 20);
        assert_eq!(window.batches(), 15, "three quarters of those under way");
    }

    #[test]
    fn it_grows_slowly_after_it_was_lowered_and_then_faster() {
        let mut window = WindowSize::new(40, 100);
        window.busy(0, 40);
        assert_eq!(window.batches(), 30);
        (0..32 * 8).for_each(|_| window.committed(30));
        assert!((36..=38).contains(&window.batches()), "{window:?}");
        (0..40).for_each(|_| window.committed(38));
        assert!((44..=48).contains(&window.batches()), "{window:?}");
    }

    #[test]
    fn unused_window_does_not_grow() {
        let mut window = WindowSize::new(40, 100);
        (0..1_000).for_each(|_| window.committed(1));
        assert_eq!(window.batches(), 40);
    }

    /// A ledger with a queue that commits blocks of a fixed number of batches.
    struct SimulatedLedger {
        queue_limit: usize,
        block: usize,
        /// How often the window had been lowered when each batch in the queue was sent.
        queue: Vec<u64>,
    }

    impl SimulatedLedger {
        /// Sends as many batches as the window allows, and commits a block. Returns the number of committed batches and
        /// of busy answers.
        fn step(&mut self, window: &mut WindowSize) -> (usize, usize) {
            let burst = vec![window.lowered(); window.batches().saturating_sub(self.queue.len())];
            let under_way = self.queue.len() + burst.len();
            let room = self.queue_limit.saturating_sub(self.queue.len()).min(burst.len());
            self.queue.extend(&burst[..room]);
            let refused = &burst[room..];
            for (answered, sent) in refused.iter().enumerate() {
                window.busy(*sent, under_way - answered);
            }
            let committed = self.block.min(self.queue.len());
            self.queue.drain(..committed);
            (0..committed).for_each(|_| window.committed(self.queue.len() + committed));
            (committed, refused.len())
        }

        /// The average number of committed batches and of busy answers per block.
        fn run(&mut self, window: &mut WindowSize, blocks: u32) -> (f64, f64) {
            let (mut committed, mut busy) = (0, 0);
            for _ in 0..blocks {
                let (of_block, refused) = self.step(window);
                (committed, busy) = (committed + of_block, busy + refused);
            }
            (as_float(committed) / f64::from(blocks), as_float(busy) / f64::from(blocks))
        }
    }

    proptest! {
        #[test]
        fn it_finds_the_rate_of_the_ledger(
            queue_limit in 1..300_usize,
            block in 1..150_usize,
            initial in 1..250_usize,
        ) {
            let mut window = WindowSize::new(initial, 250);
            let mut ledger = SimulatedLedger { queue_limit, block, queue: Vec::new() };
            ledger.run(&mut window, 50);
            let (committed, busy) = ledger.run(&mut window, 200);
            // A block can have at most as many batches as fit into the queue.
            let rate = as_float(block.min(queue_limit).min(250));
            prop_assert!(committed >= 0.8 * rate, "{committed} of {rate} in a block");
            prop_assert!(busy <= 1.0 + 0.25 * as_float(queue_limit), "{busy} busy answers in a block");
        }

        #[test]
        fn it_recovers_after_the_limit_has_grown(small in 1..30_usize, block in 30..150_usize) {
            let mut window = WindowSize::new(50, 250);
            let mut ledger = SimulatedLedger { queue_limit: small, block, queue: Vec::new() };
            ledger.run(&mut window, 100);
            prop_assert!(window.batches() <= 2 * small + 1);
            ledger.queue_limit = 300;
            ledger.run(&mut window, 60);
            let (committed, _) = ledger.run(&mut window, 50);
            prop_assert!(committed >= 0.95 * as_float(block), "{committed} of {block} in a block");
        }

        #[test]
        fn it_is_never_less_than_one(busy in proptest::collection::vec(0..3_usize, 0..200)) {
            let mut window = WindowSize::new(5, 9);
            for under_way in busy {
                match under_way {
                    0 => window.committed(5),
                    _ => window.busy(window.lowered(), under_way - 1),
                }
                prop_assert!((1..=9).contains(&window.batches()));
            }
        }
    }
}
