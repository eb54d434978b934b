use std::{
    thread,
    time::{Duration, Instant},
};

use grid_batch_core::batches::{Change, ChangeOutcome, Event, IntakeStore, LedgerStatus, NewBatch};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::events::Recorded;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::polling::{PendingBatchStore, PollPace};
use grid_batch_core::queue::TakenBatch;
use grid_batch_core::{ItemId, ServiceId, Timestamp};
use grid_batch_store::{ClaimStore, MonitorStore, Store};

use crate::{plain::Plain, target::Target};

const ROUND: usize = 100;
const SERVICES: usize = 10_000;

/// Batches added per second.
pub struct Rates {
    pub store: f64,
    pub plain: f64,
}

impl Rates {
    pub fn ratio(&self) -> f64 {
        self.store / self.plain
    }
}

/// The cost of rounds with `open` open batches.
pub struct Rounds {
    pub open: usize,
    pub take: f64,
    pub accept: f64,
    pub commit: f64,
    pub pending: f64,
    pub take_reads: u64,
    pub accept_reads: u64,
    pub commit_reads: u64,
    /// Batches taken and committed per second over one connection.
    pub cycles: f64,
    /// The same over four connections, each with its own services.
    pub cycles_of_four: f64,
}

pub fn adding(target: &Target, group: usize, total: usize) -> Rates {
    let (ours, theirs) = (target.create_database(), target.create_database());
    let claims = ours.claim_all(1);
    create_services(&claims);
    create_services(&theirs.claim_all(1));
    let mut plain = Plain::connect(&theirs);
    let (mut in_store, mut in_plain) = (Duration::ZERO, Duration::ZERO);
    for first in (0..total).step_by(group) {
        let new: Vec<NewBatch> = (first..first + group).map(batch).collect();
        in_store += time(|| add(claims.store(), &new)).1;
        in_plain += time(|| plain.insert(1_000_000_000_000_000_000 + first as i64, &new)).1;
    }
    let rate = |spent: Duration| total as f64 / spent.as_secs_f64();
    Rates { store: rate(in_store), plain: rate(in_plain) }
}

pub fn rounds(target: &Target, open: usize) -> Rounds {
    const TIMED: usize = 60;
    let db = target.create_database();
    let claims = db.claim_all(1);
    create_services(&claims);
    for first in (0..open).step_by(1_000) {
        add(claims.store(), &(first..open.min(first + 1_000)).map(batch).collect::<Vec<_>>());
    }
    db.settle();

    let monitor = MonitorStore::new(claims.clone(), |_: Recorded<'_>| ());
    let names: Vec<ServiceId> = (0..open.min(SERVICES)).map(service).collect();
    let mut rounds = names.chunks_exact(ROUND).cycle();
    let mut next = || rounds.next().expect("a round of services");
    let ever = Timestamp::from_micros(i64::MAX);
    let pace = PollPace { interval: Duration::ZERO, longest: Duration::ZERO };
    let (mut take, mut accept, mut commit, mut pending) = (vec![], vec![], vec![], vec![]);
    for timed in 0..2 * TIMED {
        // The first half warms the caches.
        let warm = timed >= TIMED;
        let (taken, took) = time(|| take_round(&claims, next()));
        let (_, accepted) = time(|| record(claims.store(), &taken, accepted));
        let (_, listed) = time(|| monitor.get_due_batch_ids(ever, pace, ROUND).expect("a list"));
        // Makes the batches ready again.
        record(claims.store(), &taken, absent);
        if warm {
            take.push(took);
            accept.push(accepted);
            pending.push(listed);
        }
    }
    drop((claims, monitor));

    let round = next();
    let (taken, take_reads) = db.count_reads(|claims| take_round(claims, round));
    let (_, accept_reads) = db.count_reads(|claims| record(claims.store(), &taken, accepted));
    let (_, commit_reads) = db.count_reads(|claims| record(claims.store(), &taken, committed));

    let claims = db.claim_all(4);
    let rounds: Vec<&[ServiceId]> = names.chunks_exact(ROUND).collect();
    let started = Instant::now();
    let ended = run_rounds(&claims, &rounds, open, &mut commit);
    let cycles = ended as f64 / started.elapsed().as_secs_f64();
    let started = Instant::now();
    let ended: usize = thread::scope(|scope| {
        let claims = &claims;
        let spawn =
            |rounds| scope.spawn(move || run_rounds(claims, rounds, open / 4, &mut Vec::new()));
        let workers: Vec<_> = rounds.chunks(rounds.len().div_ceil(4)).map(spawn).collect();
        workers.into_iter().map(|worker| worker.join().expect("rounds")).sum()
    });
    let cycles_of_four = ended as f64 / started.elapsed().as_secs_f64();
    Rounds {
        open,
        take: median(take),
        accept: median(accept),
        commit: median(commit),
        pending: median(pending),
        take_reads,
        accept_reads,
        commit_reads,
        cycles,
        cycles_of_four,
    }
}

/// Takes and commits half of the waiting batches, at most 20,000, in rounds of these services. A service that had only
/// one batch yields no more.
fn run_rounds(
    claims: &ClaimStore,
    rounds: &[&[ServiceId]],
    waiting: usize,
    commit: &mut Vec<Duration>,
) -> usize {
    let mut ended = 0;
    for round in rounds.iter().cycle().take(waiting.min(20_000).div_ceil(2 * ROUND)) {
        let taken = claims.take_next(round).expect("a round");
        record(claims.store(), &taken, accepted);
        commit.push(time(|| record(claims.store(), &taken, committed)).1);
        ended += taken.len();
    }
    ended
}

/// Creates the services by committing one batch of each, because new services cost more.
fn create_services(claims: &ClaimStore) {
    let store = claims.store();
    for first in (0..SERVICES).step_by(1_000) {
        let earlier = |number| NewBatch {
            batch_id: scattered_id(1 << 50 | number as u64),
            transaction_ids: vec![scattered_id(1 << 51 | number as u64)],
            ..batch(number)
        };
        let group: Vec<NewBatch> = (first..first + 1_000).map(earlier).collect();
        add(store, &group);
        let services: Vec<ServiceId> = group.into_iter().map(|batch| batch.service_id).collect();
        claims.take_services(&services).expect("claims");
        let taken = claims.take_next(&services).expect("a round");
        record(store, &taken, accepted);
        record(store, &taken, committed);
    }
}

/// The service with this number. Names of adjacent numbers are far apart.
fn service(number: usize) -> ServiceId {
    let name = number * 7_919 % SERVICES;
    format!("{name:05}-abcde::{:04}", name % 97).parse().expect("a service id")
}

fn batch(number: usize) -> NewBatch {
    NewBatch {
        service_id: service(number % SERVICES),
        batch_id: scattered_id(number as u64),
        signer: None,
        declared_access: None,
        transaction_ids: vec![scattered_id(1 << 40 | number as u64)],
        serialized_batch: scattered_id(number as u64).as_bytes().repeat(10)[..600].to_vec(),
        label: None,
        client: None,
        declared_new: false,
        deadline: None,
        trace: None,
    }
}

/// Ids in random order (by splitmix64), like signatures.
pub fn scattered_id(number: u64) -> ItemId {
    let mut bytes = [0; 64];
    for (at, part) in (1..).zip(bytes.chunks_exact_mut(8)) {
        let mut z = number.wrapping_mul(8).wrapping_add(at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        part.copy_from_slice(&(z ^ z >> 31).to_be_bytes());
    }
    ItemId::from_bytes(bytes)
}

pub fn add(store: &Store, batches: &[NewBatch]) {
    for answer in store.add(&[batches]).expect("a commit") {
        answer.expect("no conflict");
    }
}

fn take_round(claims: &ClaimStore, services: &[ServiceId]) -> Vec<TakenBatch> {
    let taken = claims.take_next(services).expect("a round");
    assert_eq!(taken.len(), ROUND, "every service has a batch to be tried");
    taken
}

pub fn record(store: &Store, taken: &[TakenBatch], event: impl Fn(u32) -> Event) {
    let changes: Vec<Change> = taken
        .iter()
        .map(|taken| Change {
            epoch: Some(taken.epoch),
            ..Change::new(taken.service_id.clone(), taken.batch_id, event(taken.attempt))
        })
        .collect();
    let recorded = store.record(&changes).expect("a commit");
    assert!(recorded.iter().all(|recorded| matches!(recorded, ChangeOutcome::Applied { .. })));
}

fn accepted(attempt: u32) -> Event {
    Event::Outcome { attempt, outcome: Outcome::Accepted }
}

pub fn absent(attempt: u32) -> Event {
    Event::Evidence { attempt, evidence: Evidence::Absent }
}

fn committed(_attempt: u32) -> Event {
    Event::status(LedgerStatus::Committed)
}

pub fn time<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let done = work();
    (done, started.elapsed())
}

/// The median in milliseconds.
pub fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1_000.0
}
