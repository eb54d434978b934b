//! The whole cycle of the store without a server: batches are added, taken in rounds, accepted and committed.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use grid_batch_core::batches::{Change, ChangeOutcome, Event, IntakeStore, LedgerStatus, NewBatch};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::TakenBatch;
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_store::{ClaimOptions, ClaimStore, Store, StoreOptions};

const GROUP: usize = 1_000;
/// As many as the other queues fetch.
const ROUND: usize = 500;
const CONNECTIONS: u32 = 2;

/// How long a cycle takes.
#[derive(Debug, Clone, Copy)]
pub struct StoreCycle {
    /// Adding all batches, in groups.
    pub adding: Duration,
    /// Taking and committing all, in rounds.
    pub working: Duration,
    /// Batches that were taken before an earlier one of their service was committed.
    pub out_of_order: usize,
}

/// Passes so many batches over so many services through an empty database.
pub fn measure(url: &str, batches: usize, services: usize) -> StoreCycle {
    let options = StoreOptions { connections: CONNECTIONS, ..StoreOptions::default() };
    let store = Store::open(&url.parse().unwrap(), options).unwrap();
    let claims = ClaimStore::register(store, ClaimOptions::default()).unwrap();
    let started = Instant::now();
    for first in (0..batches).step_by(GROUP) {
        let numbers = first..batches.min(first + GROUP);
        let group: Vec<NewBatch> = numbers.map(|number| batch(number, services)).collect();
        for answer in claims.store().add(&[&group]).unwrap() {
            answer.unwrap();
        }
    }
    let adding = started.elapsed();

    let names: Vec<ServiceId> = (0..services).map(service).collect();
    names.chunks(GROUP).for_each(|names| drop(claims.take_services(names).unwrap()));
    let mut order = OrderCheck { services, next: HashMap::new(), out_of_order: 0 };
    let (started, mut done) = (Instant::now(), 0);
    for round in names.chunks(ROUND).cycle() {
        let taken = claims.take_next(round).unwrap();
        taken.iter().for_each(|taken| order.take(taken));
        record(&claims, &taken, |attempt| Event::Outcome { attempt, outcome: Outcome::Accepted });
        record(&claims, &taken, |_| Event::status(LedgerStatus::Committed));
        done += taken.len();
        if done >= batches {
            break;
        }
    }
    StoreCycle { adding, working: started.elapsed(), out_of_order: order.out_of_order }
}

struct OrderCheck {
    services: usize,
    /// The number of the next batch of each service.
    next: HashMap<ServiceId, usize>,
    out_of_order: usize,
}

impl OrderCheck {
    fn take(&mut self, taken: &TakenBatch) {
        let next = self.next.entry(taken.service_id.clone()).or_insert_with(|| {
            (0..self.services).find(|number| service(*number) == taken.service_id).unwrap()
        });
        self.out_of_order += usize::from(taken.batch_id != id(*next));
        *next += self.services;
    }
}

fn record(claims: &ClaimStore, taken: &[TakenBatch], event: impl Fn(u32) -> Event) {
    let change = |taken: &TakenBatch| Change {
        epoch: Some(taken.epoch),
        ..Change::new(taken.service_id.clone(), taken.batch_id, event(taken.attempt))
    };
    let recorded = claims.store().record(&taken.iter().map(change).collect::<Vec<_>>()).unwrap();
    assert!(recorded.iter().all(|recorded| matches!(recorded, ChangeOutcome::Applied { .. })));
}

fn service(number: usize) -> ServiceId {
    format!("bench-{:05}::s{:03}", number / 1_000, number % 1_000).parse().unwrap()
}

fn batch(number: usize, services: usize) -> NewBatch {
    NewBatch {
        service_id: service(number % services),
        batch_id: id(number),
        signer: None,
        declared_access: None,
        transaction_ids: vec![id(1 << 40 | number)],
        serialized_batch: id(number).as_bytes().repeat(10)[..600].to_vec(),
        label: None,
        client: None,
        declared_new: false,
        deadline: None,
        trace: None,
    }
}

/// Ids in random order, as signatures are (by splitmix64).
fn id(number: usize) -> ItemId {
    let mut bytes = [0; 64];
    for (at, part) in (1..).zip(bytes.chunks_exact_mut(8)) {
        let mut z = (number as u64).wrapping_mul(8).wrapping_add(at);
        z = z.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        part.copy_from_slice(&(z ^ z >> 31).to_be_bytes());
    }
    ItemId::from_bytes(bytes)
}
