//! Measures claims: ten instances and 100,000 services on one PostgreSQL server.

use std::{
    thread,
    time::{Duration, Instant},
};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::ServiceId;
use grid_batch_core::batches::NewBatch;
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::queue::RoundStore;
use grid_batch_store::{ClaimOptions, ClaimStore};

use crate::{
    measure::{absent, add, median, record, scattered_id, time},
    target::{MeasuredDatabase, Target},
};

const INSTANCES: usize = 10;
const ROUND: usize = 100;
const STEP: usize = 500;

/// The cost of claims, in milliseconds.
pub struct Claims {
    pub services: usize,
    /// The time until all instances together have claimed all services.
    pub all: f64,
    /// One step of claiming.
    pub step: f64,
    /// The number of failed transactions.
    pub failed: usize,
    /// A renewal, on an idle database and while other instances take services.
    pub renewal: f64,
    pub renewal_beside: f64,
    /// Taking over an expired instance: services, steps, and the time of a step.
    pub taken_over: usize,
    pub steps: usize,
    pub takeover_step: f64,
    /// Taking a round of 100.
    pub round: f64,
}

pub fn claims(target: &Target, services: usize) -> Claims {
    let db = target.create_database();
    let store = db.open(4);
    let all: Vec<NewBatch> = (0..services).map(batch).collect();
    all.chunks(1_000).for_each(|group| add(&store, group));
    db.settle();

    let instances: Vec<ClaimStore> = (0..INSTANCES).map(|_| register(&db)).collect();
    let started = Instant::now();
    let done: Vec<InstanceResult> = thread::scope(|scope| {
        let takers: Vec<_> =
            instances.iter().map(|instance| scope.spawn(|| take_all(instance))).collect();
        takers.into_iter().map(|taker| taker.join().expect("a taker")).collect()
    });
    let all_claimed = started.elapsed().as_secs_f64() * 1_000.0;
    let taken: usize = done.iter().map(|done| done.services).sum();
    assert_eq!(taken, services, "every service has one owner");
    let failed = done.iter().map(|done| done.failed).sum();
    let collect = |part: fn(&InstanceResult) -> &Vec<Duration>| -> Vec<Duration> {
        done.iter().flat_map(|done| part(done).iter().copied()).collect()
    };
    let renewals = (0..200).map(|at| time(|| renew(&instances[at % INSTANCES])).1).collect();
    db.settle();

    let (steps, taken_over) = take_over(&db, &instances);
    let round = rounds(&instances[0]);
    Claims {
        services,
        all: all_claimed,
        step: median(collect(|done| &done.steps)),
        failed,
        renewal: median(renewals),
        renewal_beside: median(collect(|done| &done.renewals)),
        taken_over,
        steps: steps.len(),
        takeover_step: median(steps),
        round,
    }
}

/// The result of an instance that took services until none was left.
#[derive(Default)]
struct InstanceResult {
    services: usize,
    failed: usize,
    steps: Vec<Duration>,
    renewals: Vec<Duration>,
}

fn take_all(instance: &ClaimStore) -> InstanceResult {
    let mut done = InstanceResult::default();
    loop {
        done.renewals.push(time(|| renew(instance)).1);
        match time(|| instance.take(STEP)) {
            (Ok(takeover), took) => {
                // Other instances may have locked the last services and will take them.
                if takeover.claims.is_empty() {
                    return done;
                }
                done.services += takeover.claims.len();
                done.steps.push(took);
            }
            (Err(error), _) => {
                println!("failed: {error}");
                done.failed += 1;
            }
        }
    }
}

fn renew(instance: &ClaimStore) {
    assert!(instance.renew().expect("a renewal"), "the lease is valid");
}

/// The last instance expires, and the others take over its services in turn.
fn take_over(db: &MeasuredDatabase, instances: &[ClaimStore]) -> (Vec<Duration>, usize) {
    let (expired, others) = instances.split_last().expect("instances");
    let expire = format!(
        "update instances set expiry_1 = 1, expiry_2 = 1 where instance_id = '{}'",
        expired.instance()
    );
    let MeasuredDatabase::Postgres(database) = db else {
        panic!("claims are measured on PostgreSQL only")
    };
    let mut connection = PgConnection::establish(database.url()).expect("a connection");
    connection.batch_execute(&expire).expect("expiring an instance");
    let (mut steps, mut taken_over) = (Vec::new(), 0);
    for other in others.iter().cycle() {
        let (takeover, took) = time(|| other.take(STEP).expect("a step"));
        if takeover.claims.is_empty() {
            break;
        }
        taken_over += takeover.claims.len();
        steps.push(took);
    }
    (steps, taken_over)
}

/// Rounds of the same services, in milliseconds.
fn rounds(instance: &ClaimStore) -> f64 {
    const TIMED: usize = 100;
    let own = instance.ready_services(None, 2_000).expect("services");
    let rounds: Vec<&[ServiceId]> = own.chunks_exact(ROUND).collect();
    let mut times = Vec::new();
    for at in 0..2 * TIMED {
        let round = rounds[at % rounds.len()];
        let (taken, took) = time(|| instance.take_next(round));
        let taken = taken.expect("a round");
        assert_eq!(taken.len(), ROUND, "every service has a batch to be tried");
        // The first half only warms the caches.
        if at >= TIMED {
            times.push(took);
        }
        // This makes the batches ready again.
        record(instance.store(), &taken, |attempt| grid_batch_core::batches::Event::Outcome {
            attempt,
            outcome: grid_batch_core::ledger::Outcome::Ambiguous,
        });
        record(instance.store(), &taken, absent);
        renew(instance);
    }
    median(times)
}

fn register(db: &MeasuredDatabase) -> ClaimStore {
    let options = ClaimOptions { step: STEP, ..ClaimOptions::default() };
    ClaimStore::register(db.open(1), options).expect("an instance")
}

/// One batch of each service.
fn batch(number: usize) -> NewBatch {
    let service = format!("{:06}-abcde::{:04}", number * 7_919 % 1_000_003, number % 97);
    NewBatch {
        service_id: service.parse().expect("a service id"),
        batch_id: scattered_id(number as u64),
        signer: None,
        transaction_ids: vec![scattered_id(1 << 40 | number as u64)],
        serialized_batch: vec![7; 600],
        declared_access: None,
        label: None,
        client: None,
        declared_new: false,
        deadline: None,
        trace: None,
    }
}
