//! Conflicting batches in lists: none is sent without, or apart from, an earlier one that it conflicts with, nor after a
//! later one was committed.

use std::{cell::Cell, sync::Arc, time::Duration};

use grid_batch_core::batches::{BatchState, Decision, StoredBatch};
use grid_batch_core::queue::{Scheduling, StrategyKind, TakenBatch};
use grid_batch_core::{ManualClock, Timestamp};
use proptest::{prelude::*, test_runner::TestRunner};

use crate::{
    rounds::steps,
    service::{Fixture, lanes, number},
};

impl Fixture {
    fn conflicts(&self, one: usize, other: usize) -> bool {
        self.access[one].conflicts_with(&self.access[other])
    }

    /// Takes a round and checks what may be sent.
    fn check_lists(&self) -> Result<(), TestCaseError> {
        let open = self.open_batches();
        let under_way: Vec<usize> = open
            .iter()
            .filter(|batch| batch.progress.state.submitted())
            .map(|batch| number(batch.batch_id))
            .collect();
        let mut list: Vec<usize> = Vec::new();
        for TakenBatch { batch_id, joins_list, .. } in self.take_batches() {
            let taken = number(batch_id);
            if !joins_list {
                list.clear();
            }
            let conflicts = |other: &&usize| self.conflicts(**other, taken);
            let together = under_way.iter().find(conflicts);
            prop_assert_eq!(together, None, "{} is sent while it is under way", taken);
            let mut earlier = open.iter().map(|batch| number(batch.batch_id));
            let left =
                earlier.find(|it| *it < taken && self.conflicts(*it, taken) && !list.contains(it));
            prop_assert_eq!(left, None, "{} is sent before it", taken);
            let committed = (taken + 1..self.access.len())
                .filter(|later| self.conflicts(*later, taken))
                .find(|later| self.state(*later) == Some(BatchState::Committed));
            prop_assert_eq!(committed, None, "{} is sent after it", taken);
            let mut listed = list.iter().chain(joins_list.then_some(&taken));
            let alone = listed.all(|it| list.is_empty() || !self.access[*it].writes_everything());
            prop_assert!(alone, "a batch that writes everything is sent alone");
            prop_assert!(!joins_list || list.last().is_some_and(|last| *last < taken));
            list.push(taken);
        }
        Ok(())
    }

    /// An operator knows that the ledger does not have a held batch.
    fn decide(&self, held: &StoredBatch) {
        let (store, attempt) = (self.claims().store(), held.progress.attempts);
        store.decide(&self.service, &held.batch_id, attempt, Decision::Invalid).unwrap();
    }

    fn drain_lists(&self) -> Result<(), TestCaseError> {
        for _ in 0..=2 * self.access.len() {
            self.clock.advance(Duration::from_secs(60));
            let open = self.open_batches();
            if open.is_empty() {
                return Ok(());
            }
            for batch in open.iter().filter(|batch| batch.progress.attempts > 0) {
                match batch.held {
                    Some(_) if batch.progress.state != BatchState::Submitting => self.decide(batch),
                    _ => self.commit(batch),
                }
            }
            self.check_lists()?;
        }
        Err(TestCaseError::fail(format!("these never end: {:?}", self.open_batches())))
    }
}

/// Runs the steps of several cases, each in a service of its own.
pub fn check_lists(url: &str) {
    let cases = Cell::new(0);
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1)));
    let config = ProptestConfig { cases: 12, failure_persistence: None, ..Default::default() };
    let strategy = StrategyKind::Parallel;
    let scheduling = Scheduling { strategy, lanes: lanes(strategy), ..Scheduling::SERIAL };
    TestRunner::new(config)
        .run(&steps(false), |steps| {
            let service = format!("lists-{}", cases.replace(cases.get() + 1)).parse().unwrap();
            let mut fixture = Fixture::new(url, &clock, service, scheduling);
            fixture.claims().store().lists().set_open(true);
            for step in steps {
                fixture.add(step.new);
                fixture.record_event(step.of, step.kind);
                fixture.clock.advance(Duration::from_secs(step.seconds));
                fixture.check_lists()?;
            }
            fixture.drain_lists()
        })
        .unwrap();
}
