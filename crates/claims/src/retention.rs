use std::{sync::Arc, time::Duration};

use grid_batch_core::{
    BatchResult, Clock, InternalError, MonotonicTime, RetentionCursor, RetentionStore,
};
use grid_batch_support::PeriodicThread;
use log::{info, warn};

/// When [`Retention`] removes batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionOptions {
    /// How long after its end a batch is removed at the earliest.
    pub after: Duration,
    /// How often a pass over the batches starts, by any instance.
    pub interval: Duration,
    /// How many batches one step examines. A step is one transaction.
    pub step: usize,
}

impl RetentionOptions {
    /// Removes batches this long after their end, in a pass each hour.
    pub fn after(after: Duration) -> Self {
        Self { after, interval: Duration::from_hours(1), step: 200 }
    }
}

/// A thread that removes batches long after their end.
///
/// It works in passes, and a pass in steps. After each step it pauses for as long as the step took, so
/// that it uses at most half of what a database with one writer has, and others are never behind more than
/// one step. Of several instances, one starts each pass. Dropping this ends the thread after its step.
#[derive(Debug)]
pub struct Retention {
    _thread: PeriodicThread,
}

impl Retention {
    /// Starts the thread.
    pub fn start(
        store: impl RetentionStore + 'static,
        options: RetentionOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, InternalError> {
        let mut worker = RetentionWorker::new(store, options, clock);
        let first_pause = worker.idle_pause();
        let thread =
            PeriodicThread::start_with_pauses("retention", first_pause, move || worker.work())?;
        Ok(Self { _thread: thread })
    }
}

/// What the thread works with.
struct RetentionWorker<R> {
    store: R,
    options: RetentionOptions,
    clock: Arc<dyn Clock>,
    pass: Option<Pass>,
    /// Whether the last step failed.
    is_failing: bool,
}

/// A pass that has not ended.
#[derive(Debug, Default)]
struct Pass {
    from: Option<RetentionCursor>,
    removed: usize,
}

impl<R: RetentionStore> RetentionWorker<R> {
    /// The shortest pause between two steps.
    const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
    /// The pause after a failed step.
    const FAILURE_PAUSE: Duration = Duration::from_secs(10);
    /// The longest pause before it is checked whether another instance has missed a pass.
    const LONGEST_PAUSE: Duration = Duration::from_mins(1);

    fn new(store: R, options: RetentionOptions, clock: Arc<dyn Clock>) -> Self {
        Self { store, options, clock, pass: None, is_failing: false }
    }

    fn idle_pause(&self) -> Duration {
        (self.options.interval / 4).clamp(Self::SHORTEST_PAUSE, Self::LONGEST_PAUSE)
    }

    /// Does one step, and returns the pause after it.
    fn work(&mut self) -> Duration {
        let started = self.clock.monotonic();
        match self.step() {
            Ok(()) => {
                if std::mem::take(&mut self.is_failing) {
                    info!("ended batches are removed again");
                }
                self.pause_since(started)
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    warn!(error:%; "cannot remove ended batches; it is tried again");
                }
                Self::FAILURE_PAUSE
            }
        }
    }

    fn pause_since(&self, started: MonotonicTime) -> Duration {
        match self.pass {
            Some(_) => self.clock.monotonic().since(started).max(Self::SHORTEST_PAUSE),
            None => self.idle_pause(),
        }
    }

    fn step(&mut self) -> BatchResult<()> {
        if self.pass.is_none() {
            self.pass = self.store.start_retention(self.options.interval)?.then(Pass::default);
        }
        let Some(pass) = &mut self.pass else { return Ok(()) };
        let RetentionOptions { after, step, .. } = self.options;
        let removed = self.store.remove_ended_before(after, pass.from, step)?;
        pass.removed += removed.batches;
        pass.from = removed.next;
        if removed.next.is_none() {
            if pass.removed > 0 {
                info!(batches = pass.removed; "ended batches were removed");
            }
            self.pass = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{BatchError, ManualClock, Removed, mocks::MockRetentionStore};

    use super::*;

    const OPTIONS: RetentionOptions = RetentionOptions {
        after: Duration::from_hours(24),
        interval: Duration::from_secs(40),
        step: 7,
    };

    fn worker(store: MockRetentionStore) -> RetentionWorker<MockRetentionStore> {
        RetentionWorker::new(store, OPTIONS, Arc::new(ManualClock::default()))
    }

    const IDLE: Duration = Duration::from_secs(10);

    /// A store whose steps have these results, and which expects these positions.
    fn store_with_steps(
        steps: Vec<(Option<RetentionCursor>, BatchResult<Removed>)>,
    ) -> MockRetentionStore {
        let mut store = MockRetentionStore::new();
        store.expect_start_retention().once().returning(|_| Ok(true));
        let count = steps.len();
        let mut steps = steps.into_iter();
        store.expect_remove_ended_before().times(count).returning(move |after, from, step| {
            let (expected, result) = steps.next().unwrap();
            assert_eq!((after, from, step), (OPTIONS.after, expected, OPTIONS.step));
            result
        });
        store
    }

    const SHORT: Duration = RetentionWorker::<MockRetentionStore>::SHORTEST_PAUSE;
    const FIRST: Option<RetentionCursor> = Some(RetentionCursor(7));
    const SECOND: Option<RetentionCursor> = Some(RetentionCursor(20));

    #[test]
    fn pass_continues_where_its_last_step_ended() {
        let store = store_with_steps(vec![
            (None, Ok(Removed { batches: 7, next: FIRST })),
            (FIRST, Ok(Removed { batches: 0, next: SECOND })),
            (SECOND, Ok(Removed { batches: 3, next: None })),
        ]);
        let mut worker = worker(store);
        assert_eq!([(); 3].map(|()| worker.work()), [SHORT, SHORT, IDLE]);
    }

    #[test]
    fn pass_of_another_instance_is_not_repeated() {
        let mut store = MockRetentionStore::new();
        store.expect_start_retention().times(2).returning(|interval| {
            assert_eq!(interval, OPTIONS.interval);
            Ok(false)
        });
        let mut worker = worker(store);
        assert_eq!([(); 2].map(|()| worker.work()), [IDLE; 2]);
    }

    #[test]
    fn pause_is_as_long_as_the_step() {
        let clock = Arc::new(ManualClock::default());
        let mut store = MockRetentionStore::new();
        store.expect_start_retention().returning(|_| Ok(true));
        let advanced = Arc::clone(&clock);
        store.expect_remove_ended_before().returning(move |_, _, _| {
            advanced.advance(Duration::from_millis(300));
            Ok(Removed { batches: 7, next: Some(RetentionCursor(7)) })
        });
        let mut worker = RetentionWorker::new(store, OPTIONS, clock);
        assert_eq!(worker.work(), Duration::from_millis(300));
    }

    #[test]
    fn failed_step_is_tried_again() {
        let store = store_with_steps(vec![
            (None, Ok(Removed { batches: 7, next: FIRST })),
            (FIRST, Err(BatchError::Unavailable("injected by the test".to_owned()))),
            (FIRST, Ok(Removed { batches: 1, next: None })),
        ]);
        let mut worker = worker(store);
        let failure_pause = RetentionWorker::<MockRetentionStore>::FAILURE_PAUSE;
        assert_eq!([(); 3].map(|()| worker.work()), [SHORT, failure_pause, IDLE]);
    }
}
