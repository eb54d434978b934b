//! Random batches, and each round against the strategy.

use std::{cell::Cell, collections::BTreeSet, sync::Arc, time::Duration};

use grid_batch_core::batches::{AddressPrefix, DeclaredAccess, StoredBatch};
use grid_batch_core::queue::{AfterInvalid, RoundStore, Scheduling, StrategyKind};
use grid_batch_core::{Clock, ItemId, ManualClock, Timestamp};
use grid_batch_queuer::{Dependency, Next, OpenBatch, schedule};
use grid_batch_test_postgres::TestDatabase;
use proptest::{collection::vec, prelude::*, sample::Index, test_runner::TestRunner};

use crate::service::{Fixture, lanes, number};

/// A step: batches are added, something happens to one of those under way, time passes, the server may
/// be started again with another strategy, and a round is taken.
#[derive(Debug, Clone)]
pub struct Step {
    pub new: Vec<DeclaredAccess>,
    pub of: Index,
    pub kind: u8,
    pub seconds: u64,
    restart: Option<StrategyKind>,
}

pub fn steps(restarts: bool) -> impl proptest::strategy::Strategy<Value = Vec<Step>> {
    // The header of a transaction that writes nothing counts as one that writes everything.
    let prefix = || "([0-1]{2}){0,4}".prop_map(|text| AddressPrefix::new(&text));
    let access = (vec(prefix(), 0..3), vec(prefix(), 1..3));
    let access = access.prop_map(|(reads, writes)| DeclaredAccess::new(reads, writes, []));
    let new = vec(access, 0..4);
    let strategy = prop::sample::select(StrategyKind::ALL.to_vec());
    let restart = prop::option::weighted(0.1, strategy);
    let restart = restart.prop_map(move |strategy| strategy.filter(|_| restarts));
    let step = (new, any::<Index>(), 0..8u8, 0..12u64, restart);
    let step =
        step.prop_map(|(new, of, kind, seconds, restart)| Step { new, of, kind, seconds, restart });
    vec(step, 1..30)
}

impl Fixture {
    /// Commits a batch with prefixes of all lengths. Until the store has seen a length, a batch may wait
    /// without need.
    fn show_all_lengths(&mut self) {
        let all = ["2".repeat(2), "3".repeat(4), "4".repeat(6), "5".repeat(8)];
        let all = all.iter().map(|text| AddressPrefix::new(text));
        self.add(vec![DeclaredAccess::new([], all, [])]);
        self.take();
        self.drain().unwrap();
        self.is_exact = true;
    }

    /// The batches that the strategy lets the service submit now, of these.
    fn expected(&self, batches: &[StoredBatch], scheduling: Scheduling) -> BTreeSet<ItemId> {
        let halted = self.halted();
        let open = |halts: bool| {
            move |batch| OpenBatch {
                batch,
                position: Some(batch.created_at),
                access: &self.access[number(batch.batch_id)],
                halts,
            }
        };
        let open: Vec<_> =
            batches.iter().map(open(false)).chain(halted.iter().map(open(true))).collect();
        let next = schedule(scheduling, &open, &|_| Dependency::Applied, self.clock.now());
        let submitted = next.iter().zip(&open).filter(|(next, _)| **next == Next::Submit);
        submitted.map(|(_, open)| open.batch.batch_id).collect()
    }

    /// Takes a round and compares it with the strategy.
    fn check_round(&self) -> Result<(), TestCaseError> {
        let open = self.open_batches();
        let expected = self.expected(&open, self.scheduling);
        let ready = !self.claims().ready_services(None, 9).unwrap().is_empty();
        let taken = self.take();
        prop_assert!(taken.is_sorted(), "a round is in order");
        let taken: BTreeSet<ItemId> = taken.into_iter().collect();
        let is_exact = self.is_exact
            && (self.scheduling.strategy != StrategyKind::Parallel
                || self.scheduling.lanes as usize >= self.access.len());
        if is_exact {
            prop_assert_eq!(&taken, &expected, "{:?}", open);
            prop_assert!(ready || taken.is_empty());
            return Ok(());
        }
        // Which of several free batches got a lane depends on the order of the ends. A batch that was sent before has a
        // lane, and serial sends it again before earlier ones that were not sent.
        let is_serial = self.scheduling.strategy == StrategyKind::Serial;
        let strategy = if is_serial { StrategyKind::Pipeline } else { self.scheduling.strategy };
        let unlimited = Scheduling { strategy, lanes: u32::MAX, ..self.scheduling };
        let mut allowed = self.expected(&open, unlimited);
        if is_serial {
            allowed.extend(&expected);
        }
        let any_under_way = open.iter().any(|batch| batch.progress.state.submitted());
        prop_assert!(!is_serial || taken.is_empty() || !any_under_way, "{:?}: {:?}", taken, open);
        prop_assert!(taken.is_subset(&allowed), "{:?} of {:?}: {:?}", taken, allowed, open);
        if self.is_exact {
            let under_way = self.open_batches();
            let under_way = under_way.iter().filter(|batch| batch.progress.attempts > 0).count();
            prop_assert!(under_way <= self.scheduling.lanes as usize, "{under_way} under way");
            prop_assert_eq!(taken.is_empty(), expected.is_empty(), "{:?}", open);
        }
        Ok(())
    }

    /// Commits what can be sent until nothing is left.
    fn drain(&self) -> Result<(), TestCaseError> {
        for _ in 0..=2 * self.access.len() {
            self.clock.advance(Duration::from_secs(60));
            let open = self.open_batches();
            if open.is_empty() {
                return Ok(());
            }
            self.continue_after_all();
            let tried = open.iter().filter(|batch| batch.progress.attempts > 0);
            tried.for_each(|batch| self.commit(batch));
            self.check_round()?;
        }
        Err(TestCaseError::fail(format!("these never end: {:?}", self.open_batches())))
    }
}

/// What is compared in a test.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    pub scheduling: Scheduling,
    /// The lengths of all prefixes are known from the beginning.
    pub knows_lengths: bool,
    pub restarts: bool,
}

impl Check {
    pub fn of(strategy: StrategyKind) -> Self {
        let scheduling = Scheduling { strategy, lanes: lanes(strategy), ..Scheduling::SERIAL };
        Self { scheduling, knows_lengths: true, restarts: false }
    }

    pub fn with_halts(mut self) -> Self {
        self.scheduling.after_invalid = AfterInvalid::Halt;
        self
    }

    pub fn with_lanes(mut self, lanes: u32) -> Self {
        self.scheduling.lanes = lanes;
        self
    }

    pub fn on_postgres(self) {
        let database = TestDatabase::create();
        self.run(database.url());
    }

    pub fn on_sqlite(self) {
        let dir = tempfile::tempdir().unwrap();
        self.run(&format!("sqlite://{}/q.db", dir.path().display()));
    }

    /// Runs the steps of several cases, each in a service of its own.
    fn run(self, url: &str) {
        let cases = Cell::new(0);
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1)));
        let config = ProptestConfig { cases: 6, failure_persistence: None, ..Default::default() };
        TestRunner::new(config)
            .run(&steps(self.restarts), |steps| {
                let service = format!("case-{}", cases.replace(cases.get() + 1)).parse().unwrap();
                let mut fixture = Fixture::new(url, &clock, service, self.scheduling);
                if self.knows_lengths {
                    fixture.show_all_lengths();
                }
                for step in steps {
                    if let Some(strategy) = step.restart {
                        fixture.restart(strategy);
                    }
                    fixture.add(step.new);
                    fixture.record_event(step.of, step.kind);
                    if step.seconds == 0 {
                        fixture.continue_after_all();
                    }
                    fixture.clock.advance(Duration::from_secs(step.seconds));
                    fixture.check_round()?;
                }
                fixture.drain()
            })
            .unwrap();
    }
}
