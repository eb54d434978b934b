use std::{sync::Arc, time::Duration};

use grid_batch_core::batches::{RetentionCursor, RetentionStore};
use grid_batch_core::{BatchResult, Clock, MonotonicTime};
use grid_batch_support::{Job, Jobs, Next, Schedule};
use log::info;

/// When [`Retention`] removes batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionOptions {
    /// The minimum time from the end of a batch to its removal.
    pub after: Duration,
    /// How often a pass over the batches starts, on any instance.
    pub interval: Duration,
    /// How many batches one step examines. A step is one transaction.
    pub step: usize,
}

impl RetentionOptions {
    /// Options that remove batches this long after their end, in one pass each hour.
    pub fn after(after: Duration) -> Self {
        Self { after, interval: Duration::from_hours(1), step: 200 }
    }
}

/// A job that removes batches long after their end.
///
/// It works in passes, which consist of steps. After each step it pauses for as long as the step took. It thus takes at
/// most half of the time of a database that has one writer, and others wait for at most one step. If there are several
/// instances, one of them starts each pass.
#[derive(Debug)]
pub struct Retention<R> {
    store: R,
    options: RetentionOptions,
    clock: Arc<dyn Clock>,
    pass: Option<Pass>,
}

/// A pass that has not ended.
#[derive(Debug, Default)]
struct Pass {
    from: Option<RetentionCursor>,
    removed: usize,
}

impl<R: RetentionStore + 'static> Retention<R> {
    /// The shortest pause between two steps.
    const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
    /// The pause after a failed step.
    const FAILURE_PAUSE: Duration = Duration::from_secs(10);
    /// The longest pause before this instance checks whether a pass was missed.
    const LONGEST_PAUSE: Duration = Duration::from_mins(1);

    /// Starts the job.
    pub fn start(jobs: &Jobs, store: R, options: RetentionOptions, clock: Arc<dyn Clock>) -> Job {
        let mut retention = Self::new(store, options, clock);
        let schedule = Schedule::every(retention.idle_pause()).after_failure(Self::FAILURE_PAUSE);
        jobs.repeat("retention", schedule, move || retention.work())
    }

    fn new(store: R, options: RetentionOptions, clock: Arc<dyn Clock>) -> Self {
        Self { store, options, clock, pass: None }
    }

    fn idle_pause(&self) -> Duration {
        (self.options.interval / 4).clamp(Self::SHORTEST_PAUSE, Self::LONGEST_PAUSE)
    }

    /// Does one step.
    fn work(&mut self) -> BatchResult<Next> {
        let started = self.clock.monotonic();
        self.step()?;
        Ok(match self.pass {
            Some(_) => Next::After(self.pause_since(started)),
            None => Next::AfterInterval,
        })
    }

    fn pause_since(&self, started: MonotonicTime) -> Duration {
        self.clock.monotonic().since(started).max(Self::SHORTEST_PAUSE)
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
    use grid_batch_core::batches::Removed;
    use grid_batch_core::mocks::MockRetentionStore;
    use grid_batch_core::{BatchError, ManualClock};

    use super::*;

    const OPTIONS: RetentionOptions = RetentionOptions {
        after: Duration::from_hours(24),
        interval: Duration::from_secs(40),
        step: 7,
    };

    fn worker(store: MockRetentionStore) -> Retention<MockRetentionStore> {
        Retention::new(store, OPTIONS, Arc::new(ManualClock::default()))
    }

    const IDLE: BatchResult<Next> = Ok(Next::AfterInterval);

    /// A store that expects these positions and whose steps have these results.
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

    const SHORT: BatchResult<Next> =
        Ok(Next::After(Retention::<MockRetentionStore>::SHORTEST_PAUSE));
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
        assert_eq!([(); 2].map(|()| worker.work()), [IDLE, IDLE]);
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
        let mut worker = Retention::new(store, OPTIONS, clock);
        assert_eq!(worker.work(), Ok(Next::After(Duration::from_millis(300))));
    }

    #[test]
    fn failed_step_is_tried_again() {
        let error = BatchError::Unavailable("injected by the test".to_owned());
        let store = store_with_steps(vec![
            (None, Ok(Removed { batches: 7, next: FIRST })),
            (FIRST, Err(error.clone())),
            (FIRST, Ok(Removed { batches: 1, next: None })),
        ]);
        let mut worker = worker(store);
        assert_eq!([(); 3].map(|()| worker.work()), [SHORT, Err(error), IDLE]);
    }
}
