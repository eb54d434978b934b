//! Several batches of a service in a round, and services that share the in-flight window.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use grid_batch_core::batches::{BatchState, Change, Event, LedgerStatus};
use grid_batch_core::ledger::{Outcome, Submission};
use grid_batch_core::queue::{BatchFits, Round, RoundStore, ServiceShare, TakenBatch};
use grid_batch_core::{BatchResult, ItemId, ManualClock, ScopeId, ServiceId, ServiceScopeId};
use grid_batch_queuer::{BatchQueue, PlaceLimits, Places, QueueOptions, WakeUp};
use grid_batch_work::WorkTable;

/// The batches of each service that may be sent, none of which waits for another one.
#[derive(Debug, Clone, Default)]
struct FreeBatches(Arc<Mutex<BTreeMap<ServiceId, Vec<u32>>>>);

impl FreeBatches {
    fn add(&self, service: &str, batches: impl IntoIterator<Item = u32>) {
        self.lock().entry(service.parse().unwrap()).or_default().extend(batches);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ServiceId, Vec<u32>>> {
        self.0.lock().unwrap()
    }
}

const BYTES: usize = 10;

impl RoundStore for FreeBatches {
    fn ready_services(
        &self,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceId>> {
        let services = self.lock();
        let ready = services
            .iter()
            .filter(|(id, free)| !free.is_empty() && after.is_none_or(|after| *id > after));
        Ok(ready.take(limit).map(|(id, _)| id.clone()).collect())
    }

    fn take_round(&self, shares: &[ServiceShare], fits: &mut BatchFits<'_>) -> BatchResult<Round> {
        let (mut services, mut round) = (self.lock(), Round::default());
        for ServiceShare { service_id, batches } in shares {
            let Some(free) = services.get_mut(service_id) else { continue };
            for _ in 0..*batches {
                if free.is_empty() {
                    break;
                }
                if !fits(BYTES) {
                    round.left.push(service_id.clone());
                    break;
                }
                round.batches.push(TakenBatch {
                    service_id: service_id.clone(),
                    batch_id: id(free.remove(0)),
                    attempt: 1,
                    epoch: 0,
                    serialized_batch: vec![0; BYTES],
                    deadline: None,
                    trace: None,
                    joins_list: false,
                });
            }
        }
        Ok(round)
    }

    fn give_back(&self, batches: &[TakenBatch]) -> BatchResult<()> {
        let mut services = self.lock();
        for taken in batches {
            services.get_mut(&taken.service_id).unwrap().insert(0, number_of(&taken.batch_id));
        }
        Ok(())
    }
}

fn id(number: u32) -> ItemId {
    let mut bytes = [0; 64];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    ItemId::from_bytes(bytes)
}

fn number_of(id: &ItemId) -> u32 {
    u32::from_be_bytes(id.as_bytes()[..4].try_into().unwrap())
}

type Queue = BatchQueue<ServiceScopeId, FreeBatches>;

struct Bench {
    store: FreeBatches,
    wake_up: WakeUp,
    window: Places,
    clock: Arc<ManualClock>,
    queue: Queue,
}

/// A queue with a window of this size, which takes up to 100 batches of a service in a round.
fn bench(window: usize, options: QueueOptions) -> Bench {
    let clock = Arc::new(ManualClock::default());
    let options =
        QueueOptions { most_of_service: 100, clock: Arc::<ManualClock>::clone(&clock), ..options };
    let (store, wake_up) = (FreeBatches::default(), WakeUp::new(|| ()));
    let wake = wake_up.clone();
    let limits = PlaceLimits { initial: window, ..PlaceLimits::window(window) };
    let wake = move |service| wake.wake(service);
    let window = Places::new(limits, WorkTable::default(), Arc::<ManualClock>::clone(&clock), wake);
    let queue = BatchQueue::new(store.clone(), wake_up.clone(), options);
    let queue = queue.with_admission(Arc::new(window.clone()));
    Bench { store, wake_up, window, clock, queue }
}

impl Bench {
    fn record(&self, submission: &Submission<ServiceScopeId>, event: Event, state: BatchState) {
        let service = submission.scope_id().service_id();
        let batch = submission.batch_header().parse().unwrap();
        self.window.recorded(&Change::new(service.clone(), batch, event), state);
    }

    fn commit(&self, submission: &Submission<ServiceScopeId>) {
        self.record(submission, Event::status(LedgerStatus::Committed), BatchState::Committed);
    }
}

fn services_of(submissions: &[Submission<ServiceScopeId>]) -> BTreeMap<String, usize> {
    let mut services = BTreeMap::new();
    for submission in submissions {
        *services.entry(submission.scope_id().to_string()).or_default() += 1;
    }
    services
}

#[test]
fn queue_takes_all_that_the_window_allows() {
    let mut bench = bench(250, QueueOptions::default());
    bench.store.add("a::a", 0..1_000);
    let taken: Vec<_> = bench.queue.by_ref().collect();
    assert_eq!(taken.len(), 250, "in rounds of 100");
    taken[..30].iter().for_each(|submission| bench.commit(submission));
    assert_eq!(bench.queue.by_ref().count(), 30, "the ends wake the service");
}

#[test]
fn busy_batch_frees_its_place_and_lowers_the_window() {
    let mut bench = bench(100, QueueOptions::default());
    bench.store.add("a::a", 0..1_000);
    let taken: Vec<_> = bench.queue.by_ref().collect();
    for submission in &taken[50..] {
        let event = Event::Outcome { attempt: 1, outcome: Outcome::Busy };
        bench.record(submission, event, BatchState::Delayed);
    }
    assert_eq!((bench.window.counts().under_way, bench.window.counts().window), (50, 75));
    assert_eq!(bench.queue.by_ref().count(), 25);
}

#[test]
fn service_with_many_batches_does_not_delay_others() {
    const WINDOW: usize = 60;
    let mut bench = bench(WINDOW, QueueOptions::default());
    bench.store.add("a::hog", 0..10_000);
    let mut under_way: Vec<_> = bench.queue.by_ref().collect();
    assert_eq!(services_of(&under_way), BTreeMap::from([("a::hog".to_owned(), WINDOW)]));

    for number in 0..20 {
        let name = format!("s::{number:02}");
        bench.store.add(&name, [20_000 + number]);
        bench.wake_up.wake(name.parse().unwrap());
    }
    let mut sent = Vec::new();
    // The ledger ends one batch at a time.
    for _ in 0..WINDOW {
        sent.extend(bench.queue.by_ref());
        let ended = under_way.remove(0);
        bench.commit(&ended);
    }
    let services = services_of(&sent);
    assert_eq!(services.len(), 21, "all were sent within one window: {services:?}");
    let first = &services_of(&sent[..20]);
    assert!(!first.contains_key("a::hog"), "before more of the first one: {first:?}");
}

#[test]
fn services_that_start_together_are_all_in_the_first_rounds() {
    let mut bench = bench(50, QueueOptions::default());
    bench.store.add("a::hog", 0..10_000);
    for number in 0..20 {
        bench.store.add(&format!("s::{number:02}"), [20_000 + number]);
    }
    let taken: Vec<_> = bench.queue.by_ref().collect();
    let services = services_of(&taken);
    assert_eq!((taken.len(), services.len(), services["a::hog"]), (50, 21, 30), "{services:?}");
}

#[test]
fn batches_that_do_not_fit_into_memory_keep_no_place() {
    let options = QueueOptions { memory_limit: 640, ..QueueOptions::default() };
    let mut bench = bench(100, options);
    bench.store.add("a::a", 0..100);
    let taken: Vec<_> = bench.queue.by_ref().collect();
    assert_eq!(taken.len(), 16, "small batches have a quarter of the memory");
    assert_eq!(bench.window.counts().under_way, 16);
    taken.iter().for_each(|submission| bench.commit(submission));
    drop(taken);
    let next: Vec<_> = bench.queue.by_ref().collect();
    assert_eq!(next.len(), 16);
}

#[test]
fn batches_that_are_given_back_are_not_under_way() {
    let mut bench = bench(100, QueueOptions::default());
    bench.store.add("a::a", 0..30);
    let first = bench.queue.next();
    assert!(first.is_some());
    assert_eq!((bench.queue.buffered(), bench.window.counts().under_way), (29, 30));
    bench.clock.advance(QueueOptions::default().give_back_after + Duration::from_secs(1));
    let again: Vec<_> = bench.queue.by_ref().collect();
    assert_eq!((again.len(), bench.window.counts().under_way), (29, 30), "they are taken again");
    drop(bench.queue);
    assert_eq!(bench.window.counts().under_way, 30, "nothing is left in the buffer");
}

#[test]
fn queue_that_is_dropped_returns_the_places_of_its_buffer() {
    let mut bench = bench(100, QueueOptions::default());
    bench.store.add("a::a", 0..30);
    let _first = bench.queue.next();
    drop(bench.queue);
    assert_eq!(bench.window.counts().under_way, 1);
    assert_eq!(bench.store.lock().values().map(Vec::len).sum::<usize>(), 29);
}
