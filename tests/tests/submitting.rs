//! The queue, the submitter and the store together: what is stored is sent, each service in order
//! and one batch at a time, and every outcome is recorded and hurries the next batch.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::{
    collections::{BTreeMap, BTreeSet},
    future::ready,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    Change, ChangeOutcome, Event, HeaderId, LedgerStatus, NewBatch, Outcome, RunnableSubmitter,
    RunningSubmitter, ScopeId, ServiceScopeId, Submission, SubmissionAnswer, SubmissionSender,
};
use grid_batch_queuer::{BatchQueue, QueueOptions, WakeUp};
use grid_batch_store::{ClaimOptions, ClaimStore, Store, StoreObserver, StoreOptions};
use grid_batch_submitter::{FixedUrlResolver, SubmitterBuilder, SubmitterOptions, SubmitterWaker};
use grid_batch_test_postgres::TestDatabase;

const SERVICES: u64 = 5;
const EACH: u64 = 12;

/// A ledger that says it is busy the first time it is sent a batch, and takes it the second time.
#[derive(Default)]
struct BusyAtFirst {
    seen: Mutex<BTreeSet<String>>,
    taken: Mutex<BTreeMap<String, Vec<String>>>,
}

impl SubmissionSender for BusyAtFirst {
    type Id = ServiceScopeId;

    fn send<'a>(
        &'a self,
        _url: &'a str,
        submission: &'a Submission<ServiceScopeId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        let batch = submission.batch_header().to_owned();
        let first = self.seen.lock().unwrap().insert(batch.clone());
        if !first {
            let service = submission.scope_id().to_string();
            self.taken.lock().unwrap().entry(service).or_default().push(batch);
        }
        Box::pin(ready(SubmissionAnswer {
            outcome: if first { Outcome::Busy } else { Outcome::Accepted },
            status: Some(if first { 429 } else { 202 }),
            message: None,
            retry_after: None,
        }))
    }
}

#[test]
fn on_postgres_what_is_stored_is_sent_in_order() {
    let database = TestDatabase::create();
    what_is_stored_is_sent_in_order(database.url());
}

#[test]
fn on_sqlite_what_is_stored_is_sent_in_order() {
    let dir = tempfile::tempdir().unwrap();
    what_is_stored_is_sent_in_order(&format!("sqlite://{}/s.db", dir.path().display()));
}

fn what_is_stored_is_sent_in_order(url: &str) {
    let store = Store::open(&url.parse().unwrap(), StoreOptions::default()).unwrap();
    let all: Vec<NewBatch> = (0..SERVICES * EACH).map(batch).collect();
    store.add(&[&all]).unwrap().remove(0).unwrap();

    let claims = ClaimStore::register(store.clone(), ClaimOptions::default()).unwrap();
    claims.take(SERVICES as usize).unwrap();
    let waker = SubmitterWaker::new();
    let poke = waker.clone();
    let wake_up = WakeUp::new(move || poke.wake()).unwrap();
    // Nothing is found by looking: what is sent after the first round was woken.
    let never = Duration::from_secs(3_600);
    let options = QueueOptions { poll_interval: never, ..QueueOptions::default() };
    let queue = BatchQueue::<ServiceScopeId, ClaimStore>::new(claims, wake_up.clone(), options);

    let ledger = Arc::new(BusyAtFirst::default());
    let submitter = SubmitterBuilder::new()
        .with_queue(queue)
        .with_waker(waker)
        .with_sender(ledger.clone())
        .with_url_resolver(Arc::new(FixedUrlResolver::new("http://ledger")))
        .with_group_observer(Arc::new(observer(&store, wake_up)))
        // Busy is reported at once, so that the store has to hand each batch out twice.
        .with_options(SubmitterOptions {
            busy_attempts: 1,
            poll_interval: never,
            ..SubmitterOptions::default()
        })
        .build()
        .unwrap()
        .run()
        .unwrap();
    let started = Instant::now();
    while !store.depths(None, 1).unwrap().is_empty() {
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", submitter.stats());
        std::thread::yield_now();
    }
    submitter.stop().unwrap();

    let taken = ledger.taken.lock().unwrap();
    for (service, ids) in taken.iter() {
        let of_service = all.iter().filter(|batch| batch.service_id.as_str() == service);
        let expected: Vec<String> = of_service.map(|batch| batch.batch_id.to_string()).collect();
        assert_eq!(*ids, expected, "{service}");
    }
    assert_eq!(taken.len() as u64, SERVICES);
}

/// Records outcomes; a batch that is accepted is committed at once, and one that is delayed is due.
fn observer(store: &Store, wake_up: WakeUp) -> StoreObserver<ServiceScopeId> {
    let committing = store.clone();
    StoreObserver::new(store.clone(), Duration::ZERO, move |change: &Change, recorded| {
        assert!(matches!(recorded, ChangeOutcome::Applied { .. }), "{recorded:?}");
        if let Event::Outcome { outcome: Outcome::Accepted, .. } = change.event {
            let event = Event::status(LedgerStatus::Committed);
            let committed = Change { event, ..change.clone() };
            committing.record(&[committed]).unwrap();
        }
        wake_up.wake(change.service_id.clone());
    })
}

fn batch(number: u64) -> NewBatch {
    let mut id = [0; HeaderId::BYTES];
    id[..8].copy_from_slice(&number.to_be_bytes());
    let scope: ServiceScopeId = format!("abc::{}", number % SERVICES).parse().unwrap();
    NewBatch {
        service_id: scope.service_id().clone(),
        batch_id: HeaderId::from_bytes(id),
        transaction_ids: vec![HeaderId::from_bytes(id)],
        serialized_batch: vec![1],
    }
}
