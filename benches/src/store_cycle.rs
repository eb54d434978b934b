//! The whole cycle of the store without a server: batches are added, taken in rounds, accepted and committed.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
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

/// Passes a batch for each service through an empty database. The services are numbers, in the order of adding.
pub fn measure(url: &str, services: &[usize]) -> StoreCycle {
    let options = StoreOptions { connections: CONNECTIONS, ..StoreOptions::default() };
    let store = Store::open(&url.parse().unwrap(), options).unwrap();
    // Nothing renews the lease.
    let lease = Duration::from_secs(3_600);
    let options =
        ClaimOptions { idle_expiry: lease, full_expiry: lease, ..ClaimOptions::default() };
    let claims = ClaimStore::register(store, options).unwrap();
    let batches: Vec<NewBatch> = (0..).zip(services).map(|(at, &name)| batch(at, name)).collect();
    let mut order = OrderCheck::new(&batches);
    let started = Instant::now();
    for group in batches.chunks(GROUP) {
        for answer in claims.store().add(&[group]).unwrap() {
            answer.unwrap();
        }
    }
    let adding = started.elapsed();

    update_statistics(url);
    let names: Vec<ServiceId> = order.waiting.keys().cloned().collect();
    names.chunks(GROUP).for_each(|names| drop(claims.take_services(names).unwrap()));
    let (started, mut done) = (Instant::now(), 0);
    for round in names.chunks(ROUND).cycle() {
        let taken = claims.take_next(round).unwrap();
        taken.iter().for_each(|taken| order.take(taken));
        record(&claims, &taken, |attempt| Event::Outcome { attempt, outcome: Outcome::Accepted });
        record(&claims, &taken, |_| Event::status(LedgerStatus::Committed));
        done += taken.len();
        if done >= batches.len() {
            break;
        }
    }
    StoreCycle { adding, working: started.elapsed(), out_of_order: order.out_of_order }
}

/// As for the other queues.
fn update_statistics(url: &str) {
    PgConnection::establish(url).unwrap().batch_execute("vacuum analyze").unwrap();
}

struct OrderCheck {
    /// The batches of each service that were not taken.
    waiting: HashMap<ServiceId, VecDeque<ItemId>>,
    out_of_order: usize,
}

impl OrderCheck {
    fn new(batches: &[NewBatch]) -> Self {
        let mut waiting: HashMap<_, VecDeque<_>> = HashMap::new();
        for batch in batches {
            waiting.entry(batch.service_id.clone()).or_default().push_back(batch.batch_id);
        }
        Self { waiting, out_of_order: 0 }
    }

    fn take(&mut self, taken: &TakenBatch) {
        let next = self.waiting.get_mut(&taken.service_id).and_then(VecDeque::pop_front);
        self.out_of_order += usize::from(next != Some(taken.batch_id));
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

fn batch(number: usize, service_number: usize) -> NewBatch {
    NewBatch {
        service_id: service(service_number),
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
