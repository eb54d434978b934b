//! Queue and store together: the store takes the batches that the strategy chooses, and the queue
//! over a real store returns all batches in order.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use grid_batch_core::batches::{
    Change, ChangeOutcome, DeclaredAccess, Event, IntakeStore, LedgerStatus, NewBatch,
};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{RoundStore, Scheduling};
use grid_batch_core::{Clock, ItemId, ManualClock, ScopeId, ServiceId, ServiceScopeId, Timestamp};
use grid_batch_queuer::{BatchQueue, Dependency, Next, OpenBatch, QueueOptions, WakeUp, schedule};
use grid_batch_store::{ClaimOptions, ClaimStore, DatabaseClock, Store, StoreOptions};
use grid_batch_test_postgres::TestDatabase;
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};

/// Runs a test on a store on PostgreSQL, with a manual clock.
fn with_postgres(test: impl Fn(&ClaimStore, &ManualClock)) {
    let database = TestDatabase::create();
    with_store(database.url(), test);
}

fn with_sqlite(test: impl Fn(&ClaimStore, &ManualClock)) {
    let dir = tempfile::tempdir().unwrap();
    with_store(&format!("sqlite://{}/q.db", dir.path().display()), test);
}

fn with_store(url: &str, test: impl Fn(&ClaimStore, &ManualClock)) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1)));
    let options =
        StoreOptions { clock: DatabaseClock::simulated(clock.clone()), ..StoreOptions::default() };
    let store = Store::open(&url.parse().unwrap(), options).unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    let options =
        ClaimOptions { idle_expiry: day, full_expiry: 2 * day, ..ClaimOptions::default() };
    test(&ClaimStore::register(store, options).unwrap(), &clock);
}

fn service(number: usize) -> ServiceId {
    format!("abc::{number}").parse().unwrap()
}

fn batch(service_number: usize, number: u32) -> NewBatch {
    let mut id = [0; 64];
    id[..4].copy_from_slice(&number.to_be_bytes());
    NewBatch {
        service_id: service(service_number),
        batch_id: ItemId::from_bytes(id),
        signer: None,
        transaction_ids: vec![],
        serialized_batch: number.to_be_bytes().to_vec(),
        declared_access: None,
        label: None,
        client: None,
        declared_new: false,
        deadline: None,
        trace: None,
    }
}

#[test]
fn store_takes_what_the_strategy_chooses_on_postgres() {
    with_postgres(check_store_takes_what_the_strategy_chooses);
}

#[test]
fn store_takes_what_the_strategy_chooses_on_sqlite() {
    with_sqlite(check_store_takes_what_the_strategy_chooses);
}

fn check_store_takes_what_the_strategy_chooses(claims: &ClaimStore, clock: &ManualClock) {
    let store = claims.store();
    const SERVICES: usize = 4;
    let next_number = std::cell::Cell::new(0);
    // Each step adds batches to a service, records an event of an open batch, and takes a round.
    let step = (0..SERVICES, 0..3u32, 0..SERVICES, 0..7usize, 0..12u64);
    let config = ProptestConfig { cases: 20, failure_persistence: None, ..Default::default() };
    TestRunner::new(config)
        .run(&vec(step, 1..40), |steps| {
            for (to, more, of, kind, seconds) in steps {
                let first = next_number.replace(next_number.get() + more);
                let new: Vec<_> = (first..first + more).map(|n| batch(to, n)).collect();
                store.add(&[&new]).unwrap();
                claims.take(SERVICES).unwrap();
                record_event(store, clock, &service(of), kind);
                clock.advance(Duration::from_secs(seconds));

                let services: Vec<ServiceId> = (0..SERVICES).map(service).collect();
                let mut chosen = Vec::new();
                let mut ready = Vec::new();
                for service in &services {
                    let batches = store.open_batches(service, 1_000).unwrap();
                    let access = DeclaredAccess::everything();
                    let open = batches.iter().map(|batch| OpenBatch {
                        batch,
                        position: Some(batch.created_at),
                        access: &access,
                        halts: false,
                    });
                    let open: Vec<_> = open.collect();
                    let applied = |_| Dependency::Applied;
                    let next = schedule(Scheduling::SERIAL, &open, &applied, clock.now());
                    for (batch, _) in
                        batches.iter().zip(next).filter(|(_, next)| *next == Next::Submit)
                    {
                        chosen.push(batch.batch_id);
                        ready.push(service.clone());
                    }
                }
                prop_assert_eq!(claims.ready_services(None, 99).unwrap(), ready);
                let mut taken = claims.take_next(&services).unwrap();
                taken.sort_by(|a, b| a.service_id.cmp(&b.service_id));
                let taken: Vec<_> = taken.into_iter().map(|taken| taken.batch_id).collect();
                prop_assert_eq!(taken, chosen);
            }
            Ok(())
        })
        .unwrap();
}

/// Records an event of the oldest open batch of a service, if the event is possible.
fn record_event(store: &Store, clock: &ManualClock, service: &ServiceId, kind: usize) {
    let Some(oldest) = store.open_batches(service, 1).unwrap().pop() else { return };
    let attempt = oldest.progress.attempts;
    let event = match kind {
        0 => Event::Outcome { attempt, outcome: Outcome::Accepted },
        1 => Event::Outcome { attempt, outcome: Outcome::Busy },
        2 => Event::Outcome { attempt, outcome: Outcome::Ambiguous },
        3 => Event::Outcome { attempt, outcome: Outcome::Rejected },
        4 => Event::status(LedgerStatus::Valid),
        5 => Event::status(LedgerStatus::Committed),
        _ => Event::Evidence { attempt, evidence: Evidence::Absent },
    };
    let retry_at = Some(clock.now().plus(Duration::from_secs(15)));
    let change = Change::new(service.clone(), oldest.batch_id, event);
    store.record(&[Change { retry_at, ..change }]).unwrap();
}

#[test]
fn queue_returns_batches_in_order_on_postgres() {
    with_postgres(check_queue_returns_batches_in_order);
}

#[test]
fn queue_returns_batches_in_order_on_sqlite() {
    with_sqlite(check_queue_returns_batches_in_order);
}

fn check_queue_returns_batches_in_order(claims: &ClaimStore, _: &ManualClock) {
    let store = claims.store();
    const SERVICES: usize = 7;
    let all: Vec<NewBatch> = (0..210).map(|n| batch(n as usize % SERVICES, n)).collect();
    store.add(&[&all]).unwrap();
    claims.take(SERVICES).unwrap();
    let wake_up = WakeUp::new(|| ());
    let options = QueueOptions { round_size: 5, ..QueueOptions::default() };
    let queue: BatchQueue<ServiceScopeId, ClaimStore> =
        BatchQueue::new(claims.clone(), wake_up.clone(), options);

    let mut returned: BTreeMap<ServiceId, Vec<String>> = BTreeMap::new();
    for submission in queue {
        let (batch_header, scope, _) = submission.into_parts();
        let batch_id = batch_header.parse().unwrap();
        let accepted = Event::Outcome { attempt: 1, outcome: Outcome::Accepted };
        let changes = [accepted, Event::status(LedgerStatus::Committed)]
            .map(|event| Change::new(scope.service_id().clone(), batch_id, event));
        let recorded = store.record(&changes).unwrap();
        if let ChangeOutcome::Applied { next_waits: true, .. } = recorded[1] {
            wake_up.wake(scope.service_id().clone());
        }
        returned.entry(scope.service_id().clone()).or_default().push(batch_header);
    }

    for (number, ids) in returned.values().enumerate() {
        let in_order: Vec<String> = all
            .iter()
            .filter(|batch| batch.service_id == service(number))
            .map(|batch| batch.batch_id.to_string())
            .collect();
        assert_eq!(*ids, in_order);
    }
    assert_eq!(returned.len(), SERVICES);
}
