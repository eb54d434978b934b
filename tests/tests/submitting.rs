//! Queue, submitter and store together: stored batches are submitted one at a time and in order for
//! each service, and every recorded outcome wakes the submitter for the next batch.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    future::ready,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_core::future::BoxFuture;
use grid_batch_core::batches::{Change, Event, IntakeStore, LedgerStatus, NewBatch};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::events::Recorded;
use grid_batch_core::ledger::{Outcome, Submission, SubmissionAnswer};
use grid_batch_core::{ItemId, ScopeId, ServiceScopeId};
use grid_batch_nodes::NodePool;
use grid_batch_queuer::{BatchQueue, QueueOptions, WakeUp};
use grid_batch_store::{
    ClaimOptions, ClaimStore, DelayOptions, Store, StoreObserver, StoreOptions,
};
use grid_batch_submitter::{
    RunnableSubmitter, RunningSubmitter, SubmissionSender, SubmitterBuilder, SubmitterOptions,
    SubmitterWaker,
};
use grid_batch_test_postgres::TestDatabase;

const SERVICES: u64 = 5;
const BATCHES_PER_SERVICE: u64 = 12;

/// A ledger that is busy when it receives a batch the first time, and accepts it the second time.
#[derive(Default)]
struct LedgerBusyAtFirst {
    received: Mutex<BTreeSet<String>>,
    accepted: Mutex<BTreeMap<String, Vec<String>>>,
}

impl SubmissionSender for LedgerBusyAtFirst {
    type Id = ServiceScopeId;

    fn send<'a>(
        &'a self,
        _url: &'a str,
        submission: &'a Submission<ServiceScopeId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        let batch = submission.batch_header().to_owned();
        let is_first = self.received.lock().unwrap().insert(batch.clone());
        if !is_first {
            let service = submission.scope_id().to_string();
            self.accepted.lock().unwrap().entry(service).or_default().push(batch);
        }
        Box::pin(ready(SubmissionAnswer {
            outcome: if is_first { Outcome::Busy } else { Outcome::Accepted },
            status: Some(if is_first { 429 } else { 202 }),
            message: None,
            retry_after: None,
        }))
    }
}

#[test]
fn stored_batches_are_submitted_in_order_on_postgres() {
    let database = TestDatabase::create();
    check_stored_batches_are_submitted_in_order(database.url());
}

#[test]
fn stored_batches_are_submitted_in_order_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    check_stored_batches_are_submitted_in_order(&format!("sqlite://{}/s.db", dir.path().display()));
}

fn check_stored_batches_are_submitted_in_order(url: &str) {
    let store = Store::open(&url.parse().unwrap(), StoreOptions::default()).unwrap();
    let all: Vec<NewBatch> = (0..SERVICES * BATCHES_PER_SERVICE).map(batch).collect();
    store.add(&[&all]).unwrap().remove(0).unwrap();

    let claims = ClaimStore::register(store.clone(), ClaimOptions::default()).unwrap();
    claims.take(SERVICES as usize).unwrap();
    let waker = SubmitterWaker::new();
    let wake_submitter = waker.clone();
    let wake_up = WakeUp::new(move || wake_submitter.wake());
    // Without polling, every batch after the first round is submitted because of a wake-up.
    let never = Duration::from_secs(3_600);
    let options = QueueOptions { poll_interval: never, ..QueueOptions::default() };
    let queue = BatchQueue::<ServiceScopeId, ClaimStore>::new(claims, wake_up.clone(), options);

    let ledger = Arc::new(LedgerBusyAtFirst::default());
    let submitter = SubmitterBuilder::new()
        .with_queue(queue)
        .with_waker(waker)
        .with_sender(ledger.clone())
        .with_url_resolver(NodePool::new(["http://ledger"]).resolver())
        .with_group_observer(Arc::new(observer(&store, wake_up)))
        // The submitter reports Busy at once, so the store has to hand out each batch twice.
        .with_options(SubmitterOptions { poll_interval: never, ..SubmitterOptions::default() })
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

    let accepted = ledger.accepted.lock().unwrap();
    for (service, ids) in accepted.iter() {
        let of_service = all.iter().filter(|batch| batch.service_id.as_str() == service);
        let expected: Vec<String> = of_service.map(|batch| batch.batch_id.to_string()).collect();
        assert_eq!(*ids, expected, "{service}");
    }
    assert_eq!(accepted.len() as u64, SERVICES);
}

/// Records outcomes without a delay, and commits an accepted batch at once.
fn observer(store: &Store, wake_up: WakeUp) -> StoreObserver<ServiceScopeId> {
    let commit_store = store.clone();
    let at_once =
        DelayOptions { first: Duration::ZERO, longest: Duration::ZERO, ..DelayOptions::default() };
    StoreObserver::new(store.clone(), at_once, move |entry: Recorded<'_>| {
        let Recorded::Change { change, .. } = entry else { panic!("{entry:?}") };
        if let Event::Outcome { outcome: Outcome::Accepted, .. } = change.event {
            let event = Event::status(LedgerStatus::Committed);
            let committed = Change { event, ..change.clone() };
            commit_store.record(&[committed]).unwrap();
        }
        wake_up.wake(change.service_id.clone());
    })
}

fn batch(number: u64) -> NewBatch {
    let mut id = [0; ItemId::BYTES];
    id[..8].copy_from_slice(&number.to_be_bytes());
    let scope: ServiceScopeId = format!("abc::{}", number % SERVICES).parse().unwrap();
    NewBatch {
        service_id: scope.service_id().clone(),
        batch_id: ItemId::from_bytes(id),
        signer: None,
        transaction_ids: vec![ItemId::from_bytes(id)],
        serialized_batch: vec![1],
        declared_access: None,
        label: None,
        client: None,
        declared_new: false,
        deadline: None,
        trace: None,
    }
}
