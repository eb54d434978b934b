//! Batches that go from intake to their end.

use std::time::{Duration, Instant};

use grid_batch_core::batches::{Change, Event, IntakeStore, LedgerStatus, NewBatch};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::TakenBatch;
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_store::ClaimStore;

const SERVICES: u64 = 250;

/// One in this many batches is rejected.
const REJECTED: u64 = 50;

pub struct Traffic {
    claims: ClaimStore,
    services: Vec<ServiceId>,
    next: u64,
    adding: Vec<Duration>,
    taking: Vec<Duration>,
    ending: Vec<Duration>,
}

impl Traffic {
    pub fn new(claims: ClaimStore) -> Self {
        let services = (0..SERVICES).map(|n| format!("service::{n:03}").parse().unwrap()).collect();
        let [adding, taking, ending] = [const { Vec::new() }; 3];
        Self { claims, services, next: 0, adding, taking, ending }
    }

    /// Adds batches, and processes all of them until their end.
    pub fn pass_group(&mut self, count: usize) {
        let batches: Vec<NewBatch> = (0..count).map(|_| self.new_batch()).collect();
        let started = Instant::now();
        self.claims.store().add(&[&batches]).unwrap().remove(0).unwrap();
        self.adding.push(started.elapsed());
        self.claims.take_services(&self.services).unwrap();
        loop {
            let started = Instant::now();
            let taken = self.claims.take_next(&self.services).unwrap();
            self.taking.push(started.elapsed());
            if taken.is_empty() {
                return;
            }
            let started = Instant::now();
            self.end(&taken);
            self.ending.push(started.elapsed());
        }
    }

    fn end(&self, taken: &[TakenBatch]) {
        let is_rejected = |taken: &TakenBatch| taken.batch_id.as_bytes()[63] == 1;
        let sent = taken.iter().map(|taken| {
            let outcome = if is_rejected(taken) { Outcome::Rejected } else { Outcome::Accepted };
            change(taken, Event::Outcome { attempt: taken.attempt, outcome })
        });
        self.claims.store().record(&sent.collect::<Vec<_>>()).unwrap();
        let committed = taken.iter().filter(|taken| !is_rejected(taken));
        let committed =
            committed.map(|taken| change(taken, Event::status(LedgerStatus::Committed)));
        self.claims.store().record(&committed.collect::<Vec<_>>()).unwrap();
    }

    fn new_batch(&mut self) -> NewBatch {
        let number = self.next;
        self.next += 1;
        NewBatch {
            service_id: self.services[(number % SERVICES) as usize].clone(),
            batch_id: id(number, u8::from(number.is_multiple_of(REJECTED))),
            declared_access: None,
            transaction_ids: vec![id(number, 2)],
            serialized_batch: id(number, 3).as_bytes().repeat(10)[..600].to_vec(),
            signer: None,
            label: None,
            client: None,
            declared_new: false,
            deadline: None,
            trace: None,
        }
    }

    /// How long each kind of commit took.
    pub fn slowest_commits(&self) -> String {
        let Self { adding, taking, ending, .. } = self;
        let [adding, taking, ending] = [adding, taking, ending].map(|all| slowest(all));
        format!("adding a group: {adding}; taking a round: {taking}; ending a round: {ending}")
    }
}

fn slowest(durations: &[Duration]) -> String {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let at = |part: usize| sorted[(sorted.len() - 1) * part / 1_000].as_secs_f64() * 1e3;
    format!("median {:.1} ms, p99 {:.1} ms, longest {:.1} ms", at(500), at(990), at(1_000))
}

fn change(taken: &TakenBatch, event: Event) -> Change {
    Change {
        epoch: Some(taken.epoch),
        ..Change::new(taken.service_id.clone(), taken.batch_id, event)
    }
}

/// Like signatures, the ids are spread over an index.
fn id(number: u64, last: u8) -> ItemId {
    let mut bytes = [last; 64];
    let spread = (number * 4 + u64::from(last)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bytes[..8].copy_from_slice(&spread.to_be_bytes());
    ItemId::from_bytes(bytes)
}
