//! Batches that depend on others, also on later ones and on ones that never come.

use std::{sync::Arc, time::Duration};

use grid_batch_core::batches::{AddressPrefix, BatchState, DeclaredAccess, StoredBatch};
use grid_batch_core::evidence::MissingTransactionStore;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::{Scheduling, StrategyKind};
use grid_batch_core::{ManualClock, Timestamp};
use proptest::{collection::vec, prelude::*, sample::Index, test_runner::TestRunner};

use crate::service::{Fixture, id, lanes, number};

/// What a new batch writes, and how far behind it is what it depends on, if anything.
type New = (AddressPrefix, Option<isize>);

/// New batches, and what happens to which of those that were tried.
type Step = (Vec<New>, Index, u8);

fn steps() -> impl proptest::strategy::Strategy<Value = Vec<Step>> {
    let prefix = "([0-1]{2}){1,2}".prop_map(|text| AddressPrefix::new(&text));
    let new = vec((prefix, prop::option::weighted(0.4, -3..6isize)), 0..4);
    vec((new, any::<Index>(), 0..8u8), 1..25)
}

impl Fixture {
    fn add_dependents(&mut self, new: &[New]) {
        let first = self.access.len();
        let access = (first..).zip(new).map(|(number, (written, behind))| {
            let dependency = behind.and_then(|behind| number.checked_add_signed(-behind));
            let dependency = dependency.filter(|other| *other != number);
            DeclaredAccess::new([], [written.clone()], dependency.map(id))
        });
        let access: Vec<DeclaredAccess> = access.collect();
        let depends_on_invalid = |access: &DeclaredAccess| {
            let invalid = |id: &_| self.state(number(*id)) == Some(BatchState::Invalid);
            access.dependencies().iter().any(invalid)
        };
        let late = (first..).zip(&access).filter(|(_, access)| depends_on_invalid(access));
        let late: Vec<usize> = late.map(|(number, _)| number).collect();
        self.late.extend(late);
        self.add(access);
        self.free_dependents();
    }

    fn free_dependents(&self) {
        while self.claims().store().free_dependents(1_000).unwrap().more {}
    }

    /// The ledger answers what it is asked, until nothing follows from an answer.
    fn answer(&self) {
        loop {
            let asked = self.claims().missing_transactions(Duration::ZERO, 1_000).unwrap();
            let (applied, absent): (Vec<_>, Vec<_>) =
                asked.iter().partition(|id| self.is_applied_otherwise(number(**id)));
            self.claims().found_at_ledger(&applied).unwrap();
            let ended = self.claims().absent_at_ledger(&absent).unwrap().ended;
            self.free_dependents();
            if ended == 0 {
                return;
            }
        }
    }

    /// Whether the ledger has the transaction of this batch from another one, which another client sent.
    /// Then the batch itself is invalid.
    fn is_applied_otherwise(&self, batch: usize) -> bool {
        batch % 3 == 1 && self.state(batch) == Some(BatchState::Invalid)
    }

    fn dependency(&self, batch: usize) -> Option<usize> {
        self.access[batch].dependencies().first().map(|id| number(*id))
    }

    pub fn state(&self, batch: usize) -> Option<BatchState> {
        let found = self.claims().store().find(&id(batch)).unwrap();
        let own = found.iter().find(|found| found.service_id == self.service);
        own.map(|found| found.progress.state)
    }

    /// Whether all that it depends on was accepted before it.
    fn had_its_position_at_once(&self, batch: usize) -> bool {
        !self.late.contains(&batch)
            && self
                .dependency(batch)
                .is_none_or(|other| other < batch && self.had_its_position_at_once(other))
    }

    /// Takes a round: each batch after what it depends on, and after earlier ones that it conflicts with.
    fn check_dependents(&self) -> Result<(), TestCaseError> {
        let open = self.open_batches();
        let was_tried = |batch: &&StoredBatch| batch.progress.attempts > 0;
        let mut under_way: Vec<usize> =
            open.iter().filter(was_tried).map(|batch| number(batch.batch_id)).collect();
        for taken in self.take().into_iter().map(number) {
            if let Some(dependency) = self.dependency(taken) {
                let applied = self.state(dependency) == Some(BatchState::Committed)
                    || self.is_applied_otherwise(dependency);
                prop_assert!(applied, "{} is taken without {}", taken, dependency);
            }
            let conflicts = |other: &usize| {
                *other != taken && self.access[*other].conflicts_with(&self.access[taken])
            };
            let together = under_way.iter().find(|other| conflicts(other));
            prop_assert_eq!(together, None, "{} is under way", taken);
            let mut earlier = open.iter().map(|batch| number(batch.batch_id));
            let overtaken = earlier.find(|other| {
                *other < taken
                    && conflicts(other)
                    && self.had_its_position_at_once(*other)
                    && self.had_its_position_at_once(taken)
            });
            prop_assert_eq!(overtaken, None, "{} overtakes", taken);
            under_way.push(taken);
        }
        Ok(())
    }

    /// Whether it waits for a transaction that never came.
    fn waits_for_ever(&self, batch: usize) -> bool {
        // Two batches may depend on each other.
        let mut seen = vec![batch];
        while let Some(other) = self.dependency(seen[seen.len() - 1]) {
            if other >= self.access.len() || seen.contains(&other) {
                return true;
            }
            seen.push(other);
        }
        false
    }

    fn drain_dependents(&self) -> Result<(), TestCaseError> {
        for _ in 0..=2 * self.access.len() {
            self.clock.advance(Duration::from_secs(60));
            let open = self.open_batches();
            open.iter().filter(|it| it.progress.attempts > 0).for_each(|it| self.commit(it));
            self.free_dependents();
            self.answer();
            self.check_dependents()?;
        }
        for batch in 0..self.access.len() {
            let state = self.state(batch);
            let depends_on_invalid = self
                .dependency(batch)
                .is_some_and(|other| self.state(other) == Some(BatchState::Invalid));
            let goes_on =
                self.dependency(batch).is_some_and(|other| self.is_applied_otherwise(other));
            if depends_on_invalid && !goes_on {
                prop_assert_eq!(state, Some(BatchState::Invalid), "{} depends on it", batch);
            } else if self.waits_for_ever(batch) {
                prop_assert_eq!(state, Some(BatchState::New), "{} is missing one", batch);
            } else {
                prop_assert!(state.is_some_and(BatchState::is_terminal), "{batch} is {state:?}");
            }
        }
        Ok(())
    }
}

type CaseResult = Result<(), TestCaseError>;

/// Runs the steps of several cases, each in a database of its own: a batch may depend on a transaction of
/// any service.
pub fn check_dependents(
    in_new_database: impl Fn(&dyn Fn(&str) -> CaseResult) -> CaseResult,
    strategy: StrategyKind,
) {
    let config = ProptestConfig { cases: 8, failure_persistence: None, ..Default::default() };
    TestRunner::new(config)
        .run(&steps(), |steps| in_new_database(&|url| run(url, strategy, &steps)))
        .unwrap();
}

fn run(url: &str, strategy: StrategyKind, steps: &[Step]) -> CaseResult {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1)));
    let scheduling = Scheduling { strategy, lanes: lanes(strategy), ..Scheduling::SERIAL };
    let mut fixture = Fixture::new(url, &clock, "global".parse().unwrap(), scheduling);
    for (number, (new, of, kind)) in steps.iter().enumerate() {
        fixture.add_dependents(new);
        fixture.record_event(*of, *kind);
        fixture.free_dependents();
        if number % 2 == 0 {
            fixture.answer();
        }
        fixture.clock.advance(Duration::from_secs(3));
        fixture.check_dependents()?;
    }
    fixture.drain_dependents()
}
