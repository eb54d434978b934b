//! A service in a store, and what happens to its batches.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use grid_batch_core::batches::{
    Change, DeclaredAccess, Event, IntakeStore, LedgerStatus, NewBatch, StoredBatch,
};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{
    RoundStore, Scheduling, SchedulingRules, ServiceShare, StrategyKind, TakenBatch,
};
use grid_batch_core::{Clock, ItemId, ManualClock, ServiceId};
use grid_batch_store::{ClaimOptions, ClaimStore, DatabaseClock, Store, StoreOptions};
use proptest::sample::Index;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A service in a store, and what its batches declare.
pub struct Fixture {
    url: String,
    pub clock: Arc<ManualClock>,
    pub service: ServiceId,
    pub scheduling: Scheduling,
    /// `None` between two servers.
    claims: Option<ClaimStore>,
    pub access: Vec<DeclaredAccess>,
    /// All free batches are in lanes: the lengths of all prefixes are known, and the strategy has not
    /// changed.
    pub is_exact: bool,
    /// The batches that depended on an invalid one when they were added, and got their positions later.
    pub late: BTreeSet<usize>,
}

impl Fixture {
    pub fn new(
        url: &str,
        clock: &Arc<ManualClock>,
        service: ServiceId,
        scheduling: Scheduling,
    ) -> Self {
        let clock = clock.clone();
        let claims = Some(open(url, &clock, scheduling));
        let url = url.to_owned();
        Self {
            url,
            clock,
            service,
            scheduling,
            claims,
            access: vec![],
            is_exact: false,
            late: BTreeSet::new(),
        }
    }

    pub fn claims(&self) -> &ClaimStore {
        self.claims.as_ref().unwrap()
    }

    /// The server is started again with this strategy.
    pub fn restart(&mut self, strategy: StrategyKind) {
        self.scheduling = Scheduling { strategy, lanes: lanes(strategy), ..self.scheduling };
        let claims = self.claims.take().unwrap();
        claims.recover(&claims.with_submitter().unwrap()).unwrap();
        claims.release().unwrap();
        drop(claims);
        self.claims = Some(open(&self.url, &self.clock, self.scheduling));
        self.claims().take(1_000).unwrap();
        self.is_exact = false;
    }

    /// Adds batches, two in a list.
    pub fn add(&mut self, new: Vec<DeclaredAccess>) {
        let first = self.access.len();
        self.access.extend(new);
        let batch = |number: usize| NewBatch {
            service_id: self.service.clone(),
            batch_id: id(number),
            signer: None,
            transaction_ids: vec![id(number)],
            declared_access: Some(self.access[number].clone()),
            serialized_batch: vec![1],
            label: None,
            client: None,
            declared_new: false,
            deadline: None,
            trace: None,
        };
        let batches: Vec<NewBatch> = (first..self.access.len()).map(batch).collect();
        let lists: Vec<&[NewBatch]> = batches.chunks(2).collect();
        self.claims().store().add(&lists).unwrap();
        self.claims().take(1_000).unwrap();
    }

    pub fn open_batches(&self) -> Vec<StoredBatch> {
        self.claims().store().open_batches(&self.service, 10_000).unwrap()
    }

    pub fn record(&self, batch: &StoredBatch, events: impl IntoIterator<Item = Event>) {
        let retry_at = Some(self.clock.now().plus(Duration::from_secs(5)));
        let change = |event| Change::new(self.service.clone(), batch.batch_id, event);
        let changes = events.into_iter().map(|event| Change { retry_at, ..change(event) });
        self.claims().store().record(&changes.collect::<Vec<_>>()).unwrap();
    }

    /// Something that can happen to a batch that was tried.
    pub fn record_event(&self, of: Index, kind: u8) {
        let open = self.open_batches();
        let tried: Vec<_> = open.iter().filter(|batch| batch.progress.attempts > 0).collect();
        if tried.is_empty() {
            return;
        }
        let batch = tried[of.index(tried.len())];
        let attempt = batch.progress.attempts;
        let outcome = |outcome| vec![Event::Outcome { attempt, outcome }];
        match kind {
            0 => self.record(batch, outcome(Outcome::Accepted)),
            1 => self.record(batch, outcome(Outcome::Busy)),
            2 => self.record(batch, outcome(Outcome::Ambiguous)),
            3 => self.record(batch, outcome(Outcome::Rejected)),
            4 => self.record(batch, [Event::Evidence { attempt, evidence: Evidence::Lost }]),
            _ => self.commit(batch),
        }
    }

    /// The ledger commits a batch that was tried.
    pub fn commit(&self, batch: &StoredBatch) {
        let attempt = batch.progress.attempts;
        let accepted = Event::Outcome { attempt, outcome: Outcome::Accepted };
        self.record(batch, [accepted, Event::status(LedgerStatus::Committed)]);
    }

    /// The invalid batches that stop others.
    pub fn halted(&self) -> Vec<StoredBatch> {
        let halts = self.claims().store().halts(None, 10_000).unwrap();
        let halted = halts.into_iter().map(|halt| halt.batch);
        halted.filter(|batch| batch.service_id == self.service).collect()
    }

    /// An operator lets go on what invalid batches stop.
    pub fn continue_after_all(&self) {
        for batch in self.halted() {
            let store = self.claims().store();
            store.continue_after(&self.service, &batch.batch_id, None).unwrap();
        }
    }

    /// Takes all that can be taken, in order.
    pub fn take(&self) -> Vec<ItemId> {
        self.take_batches().into_iter().map(|taken| taken.batch_id).collect()
    }

    pub fn take_batches(&self) -> Vec<TakenBatch> {
        let share = ServiceShare { service_id: self.service.clone(), batches: 1_000 };
        self.claims().take_round(&[share], &mut |_| true).unwrap().batches
    }
}

fn open(url: &str, clock: &Arc<ManualClock>, scheduling: Scheduling) -> ClaimStore {
    let rules =
        SchedulingRules { default: scheduling, uses_declared_access: true, ..Default::default() };
    let options = StoreOptions {
        clock: DatabaseClock::simulated(clock.clone()),
        scheduling: Arc::new(rules),
        ..StoreOptions::default()
    };
    let store = Store::open(&url.parse().unwrap(), options).unwrap();
    let options =
        ClaimOptions { idle_expiry: DAY, full_expiry: 2 * DAY, ..ClaimOptions::default() };
    ClaimStore::register(store, options).unwrap()
}

pub fn lanes(strategy: StrategyKind) -> u32 {
    if strategy == StrategyKind::Serial { 1 } else { 1_000 }
}

/// Ids of later batches are greater.
pub fn id(number: usize) -> ItemId {
    let mut id = [0; 64];
    id[..8].copy_from_slice(&number.to_be_bytes());
    ItemId::from_bytes(id)
}

pub fn number(id: ItemId) -> usize {
    let bytes: [u8; 8] = id.as_bytes()[..8].try_into().unwrap();
    usize::from_be_bytes(bytes)
}
