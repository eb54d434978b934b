//! The queue over a store.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use grid_batch_core::batches::{BatchState, Event, LedgerStatus};
use grid_batch_core::ledger::{Outcome, Submission};
use grid_batch_core::mocks::MockRoundStore;
use grid_batch_core::queue::{Admission, RoundStore, ServiceShare, TakenBatch};
use grid_batch_core::{
    BatchError, GlobalScopeId, ManualClock, Moment, ScopeId, ServiceId, ServiceScopeId, Timestamp,
};
use grid_batch_queuer::{
    BatchQueue, PlaceLimits, Places, QueueOptions, StrategyRoundStore, WakeUp,
};
use grid_batch_work::WorkTable;

use crate::memory_store::{LARGE, MemoryStore, id};

fn number(submission: &Submission<ServiceScopeId>) -> u32 {
    u32::from_str_radix(&submission.batch_header()[..8], 16).unwrap()
}

fn wake_up() -> WakeUp {
    WakeUp::new(|| ())
}

fn queue(
    store: &MemoryStore,
    wake_up: WakeUp,
) -> BatchQueue<ServiceScopeId, StrategyRoundStore<MemoryStore>> {
    let options = QueueOptions { clock: store.clock.clone(), ..QueueOptions::default() };
    BatchQueue::new(store.round_store(), wake_up, options)
}

fn accepted(attempt: u32) -> Event {
    Event::Outcome { attempt, outcome: Outcome::Accepted }
}

fn busy(attempt: u32) -> Event {
    Event::Outcome { attempt, outcome: Outcome::Busy }
}

fn committed(_attempt: u32) -> Event {
    Event::status(LedgerStatus::Committed)
}

#[test]
fn long_backlog_does_not_delay_other_services() {
    let store = MemoryStore::default();
    for number in 0..100_000 {
        store.add("busy::one", number);
    }
    for number in 0..99 {
        store.add(&format!("s::{number}"), 200_000 + number);
    }
    let first_round: Vec<u32> =
        queue(&store, wake_up()).take(100).map(|submission| number(&submission)).collect();
    let single = first_round.iter().filter(|number| **number >= 200_000).count();
    assert_eq!((single, first_round.contains(&0)), (99, true));
}

#[test]
fn round_has_one_batch_of_a_service() {
    let store = MemoryStore::default();
    for number in 0..10 {
        store.add("a::b", number);
    }
    let mut queue = queue(&store, wake_up());
    assert_eq!(queue.next().map(|submission| number(&submission)), Some(0));
    assert!(queue.next().is_none());
    assert_eq!(queue.buffered(), 0);
}

#[test]
fn more_services_than_a_round_take_turns() {
    let store = MemoryStore::default();
    for number in 0..250 {
        store.add(&format!("s::{number:03}"), number);
        store.add(&format!("s::{number:03}"), 1_000 + number);
    }
    let mut queue = queue(&store, wake_up());
    // Each batch is committed at once, so the first services are soon ready again.
    let mut order = Vec::new();
    while order.len() < 500 {
        let submission = queue.next().unwrap();
        store.record(&submission, accepted);
        store.record(&submission, committed);
        order.push(number(&submission));
    }
    let first_turn: Vec<u32> = order[..250].iter().map(|number| number % 1_000).collect();
    let mut services = first_turn.clone();
    services.sort_unstable();
    services.dedup();
    assert_eq!(services.len(), 250, "{first_turn:?}");
}

#[test]
fn woken_service_is_taken_before_the_next_scan() {
    let store = MemoryStore::default();
    let wake_up = wake_up();
    let mut queue = queue(&store, wake_up.clone());
    assert!(queue.next().is_none());
    store.add("a::b", 1);
    assert!(queue.next().is_none(), "it was not woken, and no scan is due");
    wake_up.wake("a::b".parse().unwrap());
    assert_eq!(queue.next().map(|submission| number(&submission)), Some(1));
}

#[test]
fn service_that_was_not_woken_is_found_by_a_scan() {
    let store = MemoryStore::default();
    let mut queue = queue(&store, wake_up());
    assert!(queue.next().is_none());
    store.add("a::b", 1);
    store.clock.advance(Duration::from_secs(1));
    assert_eq!(queue.next().map(|submission| number(&submission)), Some(1));
}

#[test]
fn delayed_batch_comes_again_after_its_delay() {
    let store = MemoryStore::default();
    store.add("a::b", 1);
    store.add("a::b", 2);
    let mut queue = queue(&store, wake_up());
    store.record(&queue.next().unwrap(), busy);
    store.clock.advance(Duration::from_secs(14));
    assert!(queue.next().is_none());
    store.clock.advance(Duration::from_secs(1));
    assert_eq!(queue.next().map(|submission| number(&submission)), Some(1));
}

#[test]
fn free_service_continues_with_its_next_batch() {
    let store = MemoryStore::default();
    let wake_up = wake_up();
    for number in 0..50 {
        store.add("a::b", number);
    }
    let mut queue = queue(&store, wake_up.clone());
    for expected in 0..50 {
        let submission = queue.next().unwrap();
        assert_eq!(number(&submission), expected);
        store.record(&submission, accepted);
        store.record(&submission, committed);
        wake_up.wake("a::b".parse().unwrap());
    }
}

#[test]
fn woken_services_do_not_delay_others() {
    let store = MemoryStore::default();
    let wake_up = wake_up();
    for number in 0..100 {
        for again in 0..20 {
            store.add(&format!("woken::{number}"), 1_000 * again + number);
        }
    }
    store.add("zzz::quiet", 77_777);
    let mut queue = queue(&store, wake_up.clone());
    let mut polled = 0;
    loop {
        for number in 0..100 {
            wake_up.wake(format!("woken::{number}").parse().unwrap());
        }
        let submission = queue.next().unwrap();
        polled += 1;
        if number(&submission) == 77_777 {
            break;
        }
        store.record(&submission, accepted);
        store.record(&submission, committed);
    }
    assert!(polled < 1_000, "{polled} batches came first");
}

#[test]
fn service_of_another_ledger_is_never_marked() {
    let mut store = MockRoundStore::new();
    let named: ServiceId = "a::b".parse().unwrap();
    store.expect_ready_services().returning(move |_, _| Ok(vec![named.clone()]));
    store.expect_take_round().never();
    let mut queue: BatchQueue<GlobalScopeId, _> =
        BatchQueue::new(store, wake_up(), QueueOptions::default());
    assert!(queue.next().is_none());
}

#[test]
fn wake_up_is_kept_when_the_store_fails() {
    let mut store = MockRoundStore::new();
    store.expect_ready_services().returning(|_, _| Ok(Vec::new()));
    let mut calls = 0;
    store.expect_take_round().times(2).returning(move |services, _| {
        calls += 1;
        assert_eq!(services, [ServiceShare::of_one("a::b".parse().unwrap())]);
        match calls {
            1 => Err(BatchError::Unavailable("injected by the test".to_owned())),
            _ => Ok(vec![TakenBatch {
                service_id: services[0].service_id.clone(),
                batch_id: id(7),
                attempt: 1,
                epoch: 0,
                serialized_batch: vec![],
                deadline: None,
                trace: None,
                joins_list: false,
            }]
            .into()),
        }
    });
    let wake_up = wake_up();
    wake_up.wake("a::b".parse().unwrap());
    let mut queue: BatchQueue<ServiceScopeId, _> =
        BatchQueue::new(store, wake_up, QueueOptions::default());
    assert!(queue.next().is_none());
    assert_eq!(queue.next().map(|submission| number(&submission)), Some(7));
}

#[test]
fn idle_queue_scans_once_an_interval() {
    let clock = Arc::new(ManualClock::at(Timestamp::default()));
    let mut store = MockRoundStore::new();
    store.expect_ready_services().times(2).returning(|_, _| Ok(Vec::new()));
    store.expect_take_round().never();
    let options = QueueOptions { clock: clock.clone(), ..QueueOptions::default() };
    let mut queue: BatchQueue<ServiceScopeId, _> = BatchQueue::new(store, wake_up(), options);
    for _ in 0..100 {
        assert!(queue.next().is_none());
    }
    clock.advance(Duration::from_secs(1));
    for _ in 0..100 {
        assert!(queue.next().is_none());
    }
}

#[test]
fn dropped_queue_gives_back_its_buffer() {
    let store = MemoryStore::default();
    for (number, service) in (1..).zip(["a::a", "a::b", "a::c"]) {
        store.add(service, number);
    }
    let mut queue = queue(&store, wake_up());
    assert_eq!(number(&queue.next().unwrap()), 1);
    assert_eq!(queue.buffered(), 2);
    drop(queue);

    assert_eq!(store.states(), [BatchState::Submitting, BatchState::Delayed, BatchState::Delayed]);
}

#[test]
fn batch_that_is_polled_too_late_is_taken_again() {
    let store = MemoryStore::default();
    for (number, service) in (1..).zip(["a::a", "a::b"]) {
        store.add(service, number);
    }
    let mut queue = queue(&store, wake_up());
    assert_eq!(number(&queue.next().unwrap()), 1);
    store.clock.advance(QueueOptions::default().give_back_after);
    let second = queue.next().unwrap();
    assert_eq!((number(&second), second.attempt_id().unwrap().attempt), (2, 2));
}

/// A store with one batch that is always ready, and that takes this long to return it.
fn slow_store(
    clock: &Arc<ManualClock>,
    takes: Duration,
    jump: Option<Timestamp>,
) -> MockRoundStore {
    let mut store = MockRoundStore::new();
    store.expect_ready_services().returning(|_, _| Ok(Vec::new()));
    let clock = Arc::clone(clock);
    let mut attempt = 0;
    store.expect_take_round().returning(move |services, _| {
        clock.advance(takes);
        jump.into_iter().for_each(|time| clock.set(time));
        attempt += 1;
        let serialized_batch = vec![];
        let service_id = services[0].service_id.clone();
        let taken = TakenBatch {
            service_id,
            batch_id: id(7),
            attempt,
            epoch: 0,
            serialized_batch,
            deadline: None,
            trace: None,
            joins_list: false,
        };
        Ok(vec![taken].into())
    });
    store
}

fn queue_over(
    store: MockRoundStore,
    clock: &Arc<ManualClock>,
) -> (BatchQueue<ServiceScopeId, MockRoundStore>, WakeUp) {
    let wake_up = wake_up();
    wake_up.wake("a::b".parse().unwrap());
    let options = QueueOptions { clock: clock.clone(), ..QueueOptions::default() };
    (BatchQueue::new(store, wake_up.clone(), options), wake_up)
}

const GIVE_BACK_AFTER: Duration = Duration::from_secs(45);

#[test]
fn round_that_the_store_returns_late_is_given_back() {
    let clock = Arc::new(ManualClock::default());
    let mut store = slow_store(&clock, GIVE_BACK_AFTER, None);
    store.expect_give_back().times(2).returning(|batches| {
        assert_eq!(batches.len(), 1);
        Ok(())
    });
    let (mut queue, _wake_up) = queue_over(store, &clock);
    assert!(queue.next().is_none());
    assert_eq!(queue.buffered(), 0);
    assert!(queue.next().is_none(), "the service of a late round is taken again");
}

#[test]
fn round_that_the_store_returns_in_time_is_handed_out() {
    let clock = Arc::new(ManualClock::default());
    let asked_at = Moment::now(&*clock);
    let store = slow_store(&clock, GIVE_BACK_AFTER - Duration::from_micros(1), None);
    let (mut queue, _wake_up) = queue_over(store, &clock);
    let submission = queue.next().unwrap();
    assert_eq!(submission.taken_at(), Some(asked_at), "its limit starts before the store is asked");
}

/// The monotonic clock stands still, as if the machine had been suspended.
#[test]
fn round_is_late_if_the_time_of_day_went_on() {
    let clock = Arc::new(ManualClock::default());
    let late = Timestamp::default().plus(GIVE_BACK_AFTER);
    let mut store = slow_store(&clock, Duration::ZERO, Some(late));
    store.expect_give_back().once().returning(|_| Ok(()));
    let (mut queue, _wake_up) = queue_over(store, &clock);
    assert!(queue.next().is_none());
}

#[test]
fn late_round_is_found_after_the_time_of_day_went_back() {
    let clock = Arc::new(ManualClock::at(Timestamp::default().plus(Duration::from_hours(1))));
    let mut store = slow_store(&clock, GIVE_BACK_AFTER, Some(Timestamp::default()));
    store.expect_give_back().once().returning(|_| Ok(()));
    let (mut queue, _wake_up) = queue_over(store, &clock);
    assert!(queue.next().is_none());
}

#[test]
fn scan_does_not_wait_for_a_time_of_day_that_went_back() {
    let store = MemoryStore::default();
    store.clock.set(Timestamp::default().plus(Duration::from_hours(1)));
    let mut queue = queue(&store, wake_up());
    assert!(queue.next().is_none());
    store.add("a::b", 1);
    store.clock.set(Timestamp::default());
    store.clock.advance(Duration::from_secs(1));
    assert_eq!(queue.next().map(|submission| number(&submission)), Some(1));
}

/// Admits services whose names do not begin with `full`, and records which services have a place.
#[derive(Debug, Default)]
struct TestPlaces(Mutex<BTreeSet<ServiceId>>);

impl TestPlaces {
    fn taken(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(ToString::to_string).collect()
    }
}

impl Admission for TestPlaces {
    fn admit(&self, service: &ServiceId, _: usize) -> usize {
        let is_full = service.as_str().starts_with("full");
        usize::from(!is_full && self.0.lock().unwrap().insert(service.clone()))
    }

    fn taken(&self, _: &ServiceId, _: &[&TakenBatch]) {}

    fn release(&self, service: &ServiceId, _: usize) {
        self.0.lock().unwrap().remove(service);
    }

    fn put_back(&self, service: &ServiceId, places: usize) {
        self.release(service, places);
    }

    fn given_back(&self, batch: &TakenBatch) {
        self.release(&batch.service_id, 1);
    }

    fn submission_ended(&self, service: &ServiceId) {
        self.release(service, 1);
    }
}

#[test]
fn services_without_a_place_do_not_hide_others() {
    let store = MemoryStore::default();
    for number in 0..250 {
        store.add(&format!("full::{number:03}"), number);
    }
    store.add("s::last", 1_000);
    let (wake_up, places) = (wake_up(), Arc::new(TestPlaces::default()));
    let queue = queue(&store, wake_up.clone());
    let mut queue = queue.with_admission(Arc::<TestPlaces>::clone(&places));
    assert_eq!(queue.next().map(|submission| number(&submission)), Some(1_000));
    assert!(queue.next().is_none());
    store.add("s::woken", 1_001);
    for number in 0..250 {
        wake_up.wake(format!("full::{number:03}").parse().unwrap());
    }
    wake_up.wake("s::woken".parse().unwrap());
    assert_eq!(queue.next().map(|submission| number(&submission)), Some(1_001));
    assert_eq!(places.taken(), ["s::last", "s::woken"]);
    assert!(!store.states()[..250].contains(&BatchState::Submitting));
}

#[test]
fn place_without_a_batch_is_returned() {
    let store = MemoryStore::default();
    for (number, service) in (1..).zip(["a::a", "a::b"]) {
        store.add(service, number);
    }
    let (wake_up, places) = (wake_up(), Arc::new(TestPlaces::default()));
    wake_up.wake("a::empty".parse().unwrap());
    let queue = queue(&store, wake_up);
    let mut queue = queue.with_admission(Arc::<TestPlaces>::clone(&places));
    assert!(queue.next().is_some());
    assert_eq!(places.taken(), ["a::a", "a::b"]);
    drop(queue);
    assert_eq!(places.taken(), ["a::a"], "the batch in the buffer was given back");
}

/// A queue with a memory limit of 640 bytes: batches of up to 10 bytes are small.
fn queue_with_little_memory(
    store: &MemoryStore,
) -> (BatchQueue<ServiceScopeId, StrategyRoundStore<MemoryStore>>, Arc<AtomicUsize>) {
    let polls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&polls);
    let wake_up = WakeUp::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let options =
        QueueOptions { clock: store.clock.clone(), memory_limit: 640, ..QueueOptions::default() };
    (BatchQueue::new(store.round_store(), wake_up, options), polls)
}

#[test]
fn large_batches_are_taken_when_earlier_ones_have_ended() {
    let store = MemoryStore::default();
    for number in 0..10 {
        store.add(&format!("s::{number}"), LARGE + 200 + number);
    }
    let (mut queue, polls) = queue_with_little_memory(&store);
    let mut taken = Vec::new();
    while taken.len() < 10 {
        let in_flight: Vec<_> = queue.by_ref().collect();
        assert!((1..=2).contains(&in_flight.len()), "{}", in_flight.len());
        let bytes: usize = in_flight.iter().map(|batch| batch.serialized_batch().len()).sum();
        assert!(bytes <= 480, "{bytes} bytes are in flight");
        taken.extend(in_flight.iter().map(number));
        let polled_before = polls.load(Ordering::SeqCst);
        drop(in_flight);
        let is_over = taken.len() == 10;
        assert_eq!(polls.load(Ordering::SeqCst) > polled_before, !is_over, "the queue is woken");
    }
    let expected: Vec<u32> = (0..10).map(|number| LARGE + 200 + number).collect();
    assert_eq!(taken, expected, "in the order in which they were found");
}

#[test]
fn small_batches_do_not_wait_for_large_ones() {
    let store = MemoryStore::default();
    for number in 0..5 {
        store.add(&format!("a::{number}"), LARGE + 300 + number);
        store.add(&format!("b::{number}"), number);
    }
    let (mut queue, _) = queue_with_little_memory(&store);
    let in_flight: Vec<_> = queue.by_ref().collect();
    let numbers: Vec<u32> = in_flight.iter().map(number).collect();
    assert_eq!(numbers, [LARGE + 300, 0, 1, 2, 3, 4]);
}

#[test]
fn batch_larger_than_the_memory_limit_is_not_starved() {
    let store = MemoryStore::default();
    store.add("a::a", LARGE + 100);
    store.add("b::huge", LARGE + 9_000);
    (0..50).for_each(|number| store.add("c::many", LARGE + 101 + number));
    let (mut queue, _) = queue_with_little_memory(&store);
    let mut in_flight = queue.next();
    assert!(queue.next().is_none());
    let mut polled = 0;
    while in_flight.as_ref().is_some_and(|batch| batch.serialized_batch().len() < 9_000) {
        polled += 1;
        let ended = in_flight.take().unwrap();
        store.record(&ended, accepted);
        store.record(&ended, committed);
        store.clock.advance(Duration::from_secs(1));
        drop(ended);
        in_flight = queue.next();
    }
    assert_eq!(polled, 1, "the next large batch is the one that did not fit");
    assert!(queue.next().is_none(), "it goes alone");
}

#[test]
fn batches_given_back_release_their_memory() {
    let store = MemoryStore::default();
    for number in 0..2 {
        store.add(&format!("s::{number}"), LARGE + 240);
    }
    let (mut queue, _) = queue_with_little_memory(&store);
    drop(queue.next());
    assert_eq!(queue.buffered(), 1);
    store.clock.advance(QueueOptions::default().give_back_after);
    let again: Vec<_> = queue.by_ref().collect();
    assert_eq!(again.len(), 1, "the one that was given back");
}

/// A queue with little memory, over services of one node with two places.
struct CrowdedNode {
    store: MemoryStore,
    queue: BatchQueue<ServiceScopeId, MockRoundStore>,
    limits: Arc<Places>,
    polls: Arc<AtomicUsize>,
    rounds: Arc<AtomicUsize>,
}

impl CrowdedNode {
    /// Each of these services has a batch, and only one of the batches fits into memory. While `is_down` is set, the
    /// store returns no round.
    fn new(services: &[&str], is_down: &Arc<AtomicBool>) -> Self {
        let store = MemoryStore::default();
        for (number, service) in (LARGE + 400..).zip(services) {
            store.add(service, number);
        }
        let (polls, rounds) = (Arc::new(AtomicUsize::new(1)), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&polls);
        let wake_up = WakeUp::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        let wake = wake_up.clone();
        let wake = move |service| wake.wake(service);
        let limits = PlaceLimits::of_nodes(10, 2, |_| Some(0));
        let limits = Arc::new(Places::new(limits, WorkTable::default(), store.clock.clone(), wake));
        let options = QueueOptions {
            clock: store.clock.clone(),
            memory_limit: 640,
            ..QueueOptions::default()
        };
        let mut counted = MockRoundStore::new();
        let (found, taken) = (store.round_store(), store.round_store());
        counted
            .expect_ready_services()
            .returning(move |after, limit| found.ready_services(after, limit));
        let (counter, is_down) = (Arc::clone(&rounds), Arc::clone(is_down));
        counted.expect_take_round().returning(move |services, fits| {
            counter.fetch_add(1, Ordering::SeqCst);
            if is_down.load(Ordering::SeqCst) {
                Err(BatchError::Unavailable("injected by the test".to_owned()))
            } else {
                taken.take_round(services, fits)
            }
        });
        let queue = BatchQueue::new(counted, wake_up, options);
        let queue = queue.with_admission(Arc::<Places>::clone(&limits));
        Self { store, queue, limits, polls, rounds }
    }

    /// Polls the queue as long as it is notified, as a submitter does. Returns the submissions and the number of
    /// requested rounds.
    fn poll(&mut self) -> (Vec<Submission<ServiceScopeId>>, usize) {
        let before = self.rounds.load(Ordering::SeqCst);
        let mut polled = Vec::new();
        for _ in 0..100 {
            if self.polls.swap(0, Ordering::SeqCst) == 0 {
                return (polled, self.rounds.load(Ordering::SeqCst) - before);
            }
            polled.extend(self.queue.by_ref());
        }
        panic!("the queue is notified without end");
    }

    fn end(&self, submission: Submission<ServiceScopeId>) {
        self.store.record(&submission, accepted);
        self.store.record(&submission, committed);
        let service = submission.scope_id().service_id().clone();
        drop(submission);
        self.limits.submission_ended(&service);
    }
}

#[test]
fn services_that_do_not_fit_do_not_call_each_other() {
    let services = ["s::0", "s::1", "s::2", "s::3", "s::4"];
    let mut node = CrowdedNode::new(&services, &Arc::default());
    let mut taken = Vec::new();
    for _ in services {
        let (mut polled, rounds) = node.poll();
        assert_eq!(polled.len(), 1, "one fits into memory");
        assert!(rounds <= 3, "{rounds} rounds");
        let submission = polled.remove(0);
        taken.push(number(&submission));
        node.end(submission);
    }
    taken.sort_unstable();
    let expected: Vec<u32> = (LARGE + 400..LARGE + 405).collect();
    assert_eq!(taken, expected, "none is forgotten");
}

#[test]
fn services_do_not_call_each_other_if_the_store_fails() {
    let is_down = Arc::new(AtomicBool::new(true));
    let mut node = CrowdedNode::new(&["s::0", "s::1", "s::2", "s::3", "s::4"], &is_down);
    let (polled, rounds) = node.poll();
    assert!(polled.is_empty() && rounds <= 2, "{rounds} rounds");
    is_down.store(false, Ordering::SeqCst);
    node.store.clock.advance(Duration::from_secs(1));
    for _ in 0..5 {
        node.polls.store(1, Ordering::SeqCst);
        let (mut polled, _) = node.poll();
        assert_eq!(polled.len(), 1);
        node.end(polled.remove(0));
    }
}
