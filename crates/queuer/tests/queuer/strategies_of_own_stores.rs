//! The strategies over an importer's store. The scenarios are those of the contract of `grid-batch-store`.

use std::{collections::HashMap, sync::Arc};

use grid_batch_core::batches::{
    AddressPrefix, BatchState, DeclaredAccess, Event, LedgerStatus, StoredBatch,
};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{
    AfterInvalid, RoundStore, Scheduling, SchedulingRules, ServiceShare, StrategyKind, TakenBatch,
};
use grid_batch_queuer::{Next, StrategyRoundStore};

use crate::memory_store::{InvalidDependents, MemoryStore, id};

const SERVICE: &str = "a";

fn rules(strategy: StrategyKind, lanes: u32) -> SchedulingRules {
    SchedulingRules {
        default: Scheduling { strategy, lanes, after_invalid: AfterInvalid::Continue },
        services: HashMap::new(),
        uses_declared_access: true,
    }
}

/// The declared access of a batch that writes below a prefix.
fn writes(prefix: &str) -> DeclaredAccess {
    DeclaredAccess::new([], [AddressPrefix::new(prefix)], [])
}

/// A store, and rounds over it.
struct Fixture {
    store: MemoryStore,
    rounds: StrategyRoundStore<MemoryStore>,
}

impl Fixture {
    fn new(rules: SchedulingRules) -> Self {
        let halts = rules.may_halt();
        Self::over(MemoryStore { halts, ..MemoryStore::default() }, rules)
    }

    fn over(store: MemoryStore, rules: SchedulingRules) -> Self {
        let rounds = store.round_store().with_rules(Arc::new(rules));
        Self { store, rounds }
    }

    /// Adds batches, each of which writes below a prefix. Their numbers count from 1.
    fn with_writing<const N: usize>(self, prefixes: [&str; N]) -> Self {
        self.with_writing_from(1, prefixes)
    }

    /// The same, with numbers from `first` on.
    fn with_writing_from<const N: usize>(self, first: u32, prefixes: [&str; N]) -> Self {
        for (number, prefix) in (first..).zip(prefixes) {
            self.store.add_with_access(SERVICE, number, writes(prefix));
        }
        self
    }

    /// Takes up to this many batches and returns their numbers.
    fn take_up_to(&self, batches: usize) -> Vec<u32> {
        let share = ServiceShare { service_id: SERVICE.parse().unwrap(), batches };
        let is_ready = !self.rounds.ready_services(None, 9).unwrap().is_empty();
        let round = self.rounds.take_round(&[share], &mut |_| true).unwrap();
        assert_eq!(is_ready, !round.batches.is_empty());
        let number =
            |taken: &TakenBatch| (1..999).find(|number| id(*number) == taken.batch_id).unwrap();
        round.batches.iter().map(number).collect()
    }

    fn accept(&self, number: u32) {
        let event = Event::Outcome { attempt: 1, outcome: Outcome::Accepted };
        self.store.apply(number, event);
    }

    fn end(&self, number: u32, status: LedgerStatus) {
        self.store.apply(number, Event::status(status));
    }

    fn lose(&self, number: u32) {
        let event = Event::Evidence { attempt: 1, evidence: Evidence::Absent };
        self.store.apply(number, event);
    }
}

#[test]
fn serial_takes_one_at_a_time() {
    let fixture = Fixture::new(rules(StrategyKind::Serial, 1)).with_writing(["aa", "bb", "aa"]);
    for number in 1..=3 {
        assert_eq!(fixture.take_up_to(9), [number]);
        assert_eq!(fixture.take_up_to(9), [0; 0]);
        fixture.accept(number);
        assert_eq!(fixture.take_up_to(9), [0; 0]);
        fixture.end(number, LedgerStatus::Committed);
    }
}

#[test]
fn parallel_takes_what_does_not_conflict() {
    let fixture = Fixture::new(rules(StrategyKind::Parallel, 9));
    let fixture = fixture.with_writing(["aa", "bb", "aa00", "cc"]);
    assert_eq!(fixture.take_up_to(9), [1, 2, 4]);
    [1, 2].into_iter().for_each(|number| fixture.accept(number));
    fixture.end(2, LedgerStatus::Committed);
    assert_eq!(fixture.take_up_to(9), [0; 0]);
    fixture.end(1, LedgerStatus::Committed);
    assert_eq!(fixture.take_up_to(9), [3]);
}

#[test]
fn lanes_limit_what_is_under_way() {
    let fixture = Fixture::new(rules(StrategyKind::Parallel, 2));
    let fixture = fixture.with_writing(["aa", "bb", "cc", "dd"]);
    assert_eq!(fixture.take_up_to(9), [1, 2]);
    fixture.accept(2);
    fixture.end(2, LedgerStatus::Committed);
    assert_eq!(fixture.take_up_to(9), [3]);
}

#[test]
fn share_limits_what_is_taken() {
    let fixture = Fixture::new(rules(StrategyKind::Parallel, 9)).with_writing(["aa", "bb", "cc"]);
    assert_eq!(fixture.take_up_to(2), [1, 2]);
    assert_eq!(fixture.take_up_to(2), [3]);
}

#[test]
fn held_batches_take_no_lanes() {
    let fixture = Fixture::new(rules(StrategyKind::Parallel, 1)).with_writing(["aa", "bb", "aa"]);
    fixture.store.hold(1);
    assert_eq!(fixture.take_up_to(9), [2]);
}

#[test]
fn pipeline_sends_the_next_when_the_one_before_is_accepted() {
    let fixture = Fixture::new(rules(StrategyKind::Pipeline, 3));
    let fixture = fixture.with_writing(["aa", "aa", "bb", "aa"]);
    for number in 1..=3 {
        assert_eq!(fixture.take_up_to(9), [number]);
        assert_eq!(fixture.take_up_to(9), [0; 0], "{number} is with a submitter");
        fixture.accept(number);
    }
    assert_eq!(fixture.take_up_to(9), [0; 0], "three are under way");
    fixture.end(1, LedgerStatus::Committed);
    assert_eq!(fixture.take_up_to(9), [4]);
}

#[test]
fn pipeline_waits_for_all_behind_a_lost_batch() {
    let fixture = Fixture::new(rules(StrategyKind::Pipeline, 9));
    let fixture = fixture.with_writing(["aa", "aa", "bb", "aa"]);
    for number in 1..=3 {
        fixture.take_up_to(9);
        fixture.accept(number);
    }
    fixture.lose(2);
    assert_eq!(fixture.take_up_to(9), [0; 0], "3 may still be at the ledger, behind 2");
    fixture.lose(3);
    assert_eq!(fixture.take_up_to(9), [2]);
}

#[test]
fn invalid_batch_halts_what_follows_or_conflicts() {
    for (strategy, others) in [(StrategyKind::Pipeline, vec![]), (StrategyKind::Parallel, vec![3])]
    {
        let mut rules = rules(strategy, 9);
        rules.default.after_invalid = AfterInvalid::Halt;
        let fixture = Fixture::new(rules).with_writing(["aa", "aa", "bb"]);
        assert_eq!(fixture.take_up_to(1), [1]);
        fixture.accept(1);
        fixture.end(1, LedgerStatus::Invalid);
        assert_eq!(fixture.take_up_to(9), others, "{strategy:?}");
    }
}

#[test]
fn dependent_waits_until_its_dependency_is_committed() {
    for strategy in StrategyKind::ALL {
        let fixture = Fixture::new(rules(strategy, 9)).with_writing(["aa"]);
        let dependent = DeclaredAccess::new([], [AddressPrefix::new("bb")], [id(1)]);
        fixture.store.add_with_access("a", 2, dependent);
        assert_eq!(fixture.take_up_to(9), [1], "{strategy:?}");
        fixture.accept(1);
        assert_eq!(fixture.take_up_to(9), [0; 0], "{strategy:?}");
        fixture.end(1, LedgerStatus::Committed);
        assert_eq!(fixture.take_up_to(9), [2], "{strategy:?}");
    }
}

/// The declared access of a batch that depends on the transaction of another one.
fn depends_on(number: u32) -> DeclaredAccess {
    DeclaredAccess::new([], [AddressPrefix::new(&format!("dd{number:04x}"))], [id(number)])
}

#[test]
fn dependent_of_a_later_batch_is_sent_after_it() {
    for strategy in StrategyKind::ALL {
        let fixture = Fixture::new(rules(strategy, 1));
        fixture.store.add_with_access(SERVICE, 1, depends_on(2));
        let fixture = fixture.with_writing_from(2, ["aa"]);
        for number in [2, 1] {
            assert_eq!(fixture.take_up_to(9), [number], "{strategy:?}");
            fixture.accept(number);
            assert_eq!(fixture.take_up_to(9), [0; 0], "{strategy:?}");
            fixture.end(number, LedgerStatus::Committed);
        }
    }
}

#[test]
fn dependency_far_behind_stops_no_other() {
    let fixture = Fixture::new(rules(StrategyKind::Serial, 1));
    fixture.store.add_with_access(SERVICE, 1, depends_on(300));
    (2..=300).for_each(|number| fixture.store.add_with_access(SERVICE, number, writes("aa")));
    assert_eq!(fixture.take_up_to(9), [2]);
}

#[test]
fn batch_that_misses_a_transaction_stops_no_other() {
    for strategy in StrategyKind::ALL {
        let fixture = Fixture::new(rules(strategy, 1));
        fixture.store.add_with_access(SERVICE, 1, depends_on(3));
        let fixture = fixture.with_writing_from(2, ["aa"]);
        assert_eq!(fixture.take_up_to(9), [2], "{strategy:?}");
        fixture.accept(2);
        fixture.end(2, LedgerStatus::Committed);
        assert_eq!(fixture.take_up_to(9), [0; 0], "{strategy:?}");
        let fixture = fixture.with_writing_from(3, ["aa"]);
        assert_eq!(fixture.take_up_to(9), [3], "{strategy:?}");
        fixture.accept(3);
        fixture.end(3, LedgerStatus::Committed);
        assert_eq!(fixture.take_up_to(9), [1], "{strategy:?}");
    }
}

#[test]
fn dependents_of_an_invalid_batch_end_with_it() {
    for strategy in StrategyKind::ALL {
        let after_invalid = Some(InvalidDependents::End);
        let store = MemoryStore { after_invalid, ..MemoryStore::default() };
        let fixture = Fixture::over(store, rules(strategy, 1)).with_writing(["aa"]);
        for number in [2, 3] {
            fixture.store.add_with_access(SERVICE, number, depends_on(number - 1));
        }
        let fixture = fixture.with_writing_from(4, ["aa"]);
        assert_eq!(fixture.take_up_to(9), [1]);
        fixture.accept(1);
        fixture.end(1, LedgerStatus::Invalid);
        assert_eq!(fixture.take_up_to(9), [4], "{strategy:?}");
        let states = [BatchState::Invalid; 3].into_iter().chain([BatchState::Submitting]);
        assert_eq!(fixture.store.states(), states.collect::<Vec<_>>(), "{strategy:?}");
    }
}

#[test]
fn dependent_that_the_store_does_not_end_is_explained() {
    let after_invalid = Some(InvalidDependents::StayOpen);
    let store = MemoryStore { after_invalid, ..MemoryStore::default() };
    let fixture = Fixture::over(store, rules(StrategyKind::Parallel, 9)).with_writing(["aa"]);
    fixture.store.add_with_access(SERVICE, 2, depends_on(1));
    assert_eq!(fixture.take_up_to(9), [1]);
    fixture.accept(1);
    fixture.end(1, LedgerStatus::Invalid);
    assert_eq!(fixture.take_up_to(9), [0; 0]);
    let mut told = Vec::new();
    let tell =
        |batch: &StoredBatch, next: Next<'_>| told.push((batch.batch_id, format!("{next:?}")));
    fixture.rounds.explain(&SERVICE.parse().unwrap(), tell).unwrap();
    assert_eq!(told, [(id(2), format!("{:?}", Next::EndAsInvalid(id(1))))]);
}

#[test]
fn many_batches_that_were_tried_hide_no_other() {
    let fixture = Fixture::new(rules(StrategyKind::Parallel, 1));
    for number in 1..=250 {
        let access = DeclaredAccess::new([], [AddressPrefix::new(&format!("{number:04x}"))], []);
        fixture.store.add_with_access(SERVICE, number, access);
        if number <= 249 {
            fixture.store.apply(number, Event::Taken);
        }
    }
    assert_eq!(fixture.take_up_to(9), [0; 0], "more than one lane is busy");
}
