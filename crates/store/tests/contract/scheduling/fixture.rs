//! Stores with rules, and batches that declare what they access.

use std::{collections::HashMap, sync::Arc, time::Duration};

use grid_batch_core::ItemId;
use grid_batch_core::batches::{
    AddressPrefix, Change, ChangeOutcome, DeclaredAccess, Event, LedgerStatus, NewBatch,
};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::MissingTransactionStore;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{
    AfterInvalid, RoundStore, Scheduling, SchedulingRules, ServiceShare, StrategyKind, TakenBatch,
};
use grid_batch_store::{ClaimOptions, ClaimStore, StoreOptions};

use crate::fixture::{Database, StoreExt, TestStore, batch, happened, id, service};

pub const SERVICE: &str = "a::b";

pub fn rules(strategy: StrategyKind, lanes: u32) -> SchedulingRules {
    SchedulingRules {
        default: Scheduling { strategy, after_invalid: AfterInvalid::Continue, lanes },
        services: HashMap::new(),
        uses_declared_access: true,
    }
}

/// Starts again with other rules. The services are claimed anew.
pub fn restart(db: &Database, before: TestStore, strategy: StrategyKind, lanes: u32) -> ClaimStore {
    before.worker().release().unwrap();
    drop(before);
    if !db.is_postgres() {
        db.forget_lock();
    }
    let store = db.open_scheduled(strategy, lanes).into_store();
    let claims = ClaimStore::register(store, ClaimOptions::default()).unwrap();
    claims.take(usize::MAX).unwrap();
    claims
}

impl Database {
    pub fn scheduled(&self, strategy: StrategyKind, lanes: u32) -> StoreOptions {
        StoreOptions { scheduling: Arc::new(rules(strategy, lanes)), ..self.options() }
    }

    /// Opens a store whose services have this strategy.
    pub fn open_scheduled(&self, strategy: StrategyKind, lanes: u32) -> TestStore {
        self.open_with(self.scheduled(strategy, lanes))
    }

    /// Opens a store in which an invalid batch stops others.
    pub fn open_halting(&self, strategy: StrategyKind) -> TestStore {
        let mut rules = rules(strategy, 100);
        rules.default.after_invalid = AfterInvalid::Halt;
        self.open_with(StoreOptions { scheduling: Arc::new(rules), ..self.options() })
    }

    pub fn open_parallel(&self) -> TestStore {
        self.open_scheduled(StrategyKind::Parallel, 100)
    }

    /// The number of rows that only exist for batches of services with several lanes.
    pub fn scheduling_rows(&self) -> i64 {
        self.number(
            "select (select count(*) from waiting_batches) + (select count(*) from declared_addresses)
                 + (select count(*) from changed_blockers)
                 + (select count(*) from lanes where blocker_seq is not null) as number",
        )
    }
}

fn prefixes(texts: &[&str]) -> Vec<AddressPrefix> {
    texts.iter().map(|text| AddressPrefix::new(text)).collect()
}

/// A batch that declares these addresses.
pub fn accessing(service: &str, number: u64, reads: &[&str], writes: &[&str]) -> NewBatch {
    let access = DeclaredAccess::new(prefixes(reads), prefixes(writes), []);
    NewBatch { declared_access: Some(access), ..batch(service, number) }
}

/// A batch of a service that writes one address and depends on transactions of other batches.
pub fn depending(service: &str, number: u64, address: &str, dependencies: &[ItemId]) -> NewBatch {
    let access = DeclaredAccess::new([], prefixes(&[address]), dependencies.iter().copied());
    NewBatch { declared_access: Some(access), ..batch(service, number) }
}

/// The first transaction of the batch with this number.
pub fn transaction_of(number: u64) -> ItemId {
    id(number + 1_000_000)
}

/// A batch that writes one address.
pub fn writing(number: u64, address: &str) -> NewBatch {
    accessing(SERVICE, number, &[], &[address])
}

/// A complete address that begins with this.
pub fn address(beginning: &str) -> String {
    format!("{beginning:0<70}")
}

/// The number that the id of a batch begins with.
pub fn number(taken: &TakenBatch) -> u64 {
    let bytes = taken.batch_id.as_bytes();
    u64::from_be_bytes(bytes[..8].try_into().unwrap())
}

pub fn numbers(taken: &[TakenBatch]) -> Vec<u64> {
    taken.iter().map(number).collect()
}

/// Shortcuts for services with several lanes.
pub trait ScheduledExt {
    /// Takes up to this many batches of the service.
    fn take_up_to(&self, count: usize) -> Vec<TakenBatch>;
    /// Records these batches as committed, in one commit.
    fn commit(&self, taken: &[TakenBatch]);
    fn end(&self, taken: &TakenBatch, status: LedgerStatus) -> ChangeOutcome;
    /// Evaluates everything that waits for ended batches, until nothing is left.
    fn free_all(&self);
    /// Takes all batches of a service, and commits them. Returns their numbers.
    fn commit_all_of(&self, name: &str) -> Vec<u64>;
    /// Answers that the ledger does not have the transactions that it is asked about, until none is left.
    fn answer_absent(&self);
}

impl ScheduledExt for TestStore {
    fn take_up_to(&self, count: usize) -> Vec<TakenBatch> {
        let share = ServiceShare { service_id: service(SERVICE), batches: count };
        self.worker_of_all().take_round(&[share], &mut |_| true).unwrap().batches
    }

    fn commit(&self, taken: &[TakenBatch]) {
        let committed = |taken: &TakenBatch| {
            let outcome = Event::Outcome { attempt: taken.attempt, outcome: Outcome::Committed };
            happened(taken, outcome)
        };
        let changes: Vec<Change> = taken.iter().map(committed).collect();
        for outcome in self.record(&changes).unwrap() {
            assert!(matches!(outcome, ChangeOutcome::Applied { .. }), "{outcome:?}");
        }
    }

    fn free_all(&self) {
        while self.free_dependents(1_000).unwrap().more || self.dependents_wait() {}
    }

    fn commit_all_of(&self, name: &str) -> Vec<u64> {
        let share = ServiceShare { service_id: service(name), batches: 100 };
        let taken = self.worker_of_all().take_round(&[share], &mut |_| true).unwrap().batches;
        self.commit(&taken);
        numbers(&taken)
    }

    fn answer_absent(&self) {
        loop {
            self.free_all();
            let asked = self.worker_of_all().missing_transactions(Duration::ZERO, 100).unwrap();
            if self.absent_at_ledger(&asked).unwrap().ended == 0 {
                return;
            }
        }
    }

    fn end(&self, taken: &TakenBatch, status: LedgerStatus) -> ChangeOutcome {
        self.outcome(taken, Outcome::Accepted);
        self.status(taken, status)
    }
}
