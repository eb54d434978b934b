//! The queue over a store in memory that keeps every rule of a real one.
#![expect(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{
    BatchError, BatchResult, BatchState, Clock, Event, GlobalScopeId, HeaderId, LedgerStatus,
    ManualClock, Outcome, Progress, RoundStore, ServiceId, ServiceScopeId, StoredBatch, Submission,
    TakenBatch, Timestamp, mocks::MockRoundStore, transition,
};
use grid_batch_queuer::{BatchQueue, Choice, QueueOptions, WakeUp, choose};

/// Batches in memory. What the strategy chooses is what is taken.
#[derive(Debug, Clone, Default)]
struct Memory {
    batches: Arc<Mutex<BTreeMap<ServiceId, Vec<StoredBatch>>>>,
    clock: Arc<ManualClock>,
}

impl Memory {
    fn add(&self, name: &str, number: u32) {
        let service_id: ServiceId = name.parse().unwrap();
        let mut batches = self.batches.lock().unwrap();
        let of_service = batches.entry(service_id.clone()).or_default();
        of_service.push(StoredBatch {
            service_id,
            batch_id: id(number),
            created_at: Timestamp::from_micros(of_service.len() as i64),
            progress: Progress::NEW,
            submitted_at: None,
            checked_at: None,
            next_try_at: None,
            last_error: None,
            held: None,
            ended_at: None,
        });
    }

    fn record(&self, submission: &Submission<ServiceScopeId>, event: fn(u32) -> Event) {
        let delay = Duration::from_secs(15);
        for batch in self.batches.lock().unwrap().values_mut().flatten() {
            if batch.batch_id.to_string() == submission.batch_header() {
                let event = event(batch.progress.attempts);
                batch.progress = transition(batch.progress, event).unwrap();
                let is_delayed = batch.progress.state == BatchState::Delayed;
                batch.next_try_at = is_delayed.then(|| self.clock.now().plus(delay));
            }
        }
    }
}

impl RoundStore for Memory {
    fn ready_services(
        &self,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceId>> {
        let batches = self.batches.lock().unwrap();
        let is_ready =
            |batches: &[StoredBatch]| matches!(choose(batches, self.clock.now()), Choice::Take(_));
        Ok(batches
            .iter()
            .filter(|(service, batches)| after.is_none_or(|a| *service > a) && is_ready(batches))
            .map(|(service, _)| service.clone())
            .take(limit)
            .collect())
    }

    fn take_round(&self, services: &[ServiceId]) -> BatchResult<Vec<TakenBatch>> {
        let mut stored = self.batches.lock().unwrap();
        let mut round = Vec::new();
        for service in services {
            let Some(batches) = stored.get_mut(service) else { continue };
            let Choice::Take(chosen) = choose(batches, self.clock.now()) else { continue };
            let batch_id = chosen.batch_id;
            let batch = batches.iter_mut().find(|batch| batch.batch_id == batch_id).unwrap();
            batch.progress = transition(batch.progress, Event::Taken).unwrap();
            round.push(TakenBatch {
                service_id: service.clone(),
                batch_id,
                attempt: batch.progress.attempts,
                epoch: 0,
                serialized_batch: vec![1],
            });
        }
        Ok(round)
    }

    fn give_back(&self, given: &[TakenBatch]) -> BatchResult<()> {
        let mut stored = self.batches.lock().unwrap();
        for taken in given {
            let of_service = stored.get_mut(&taken.service_id).unwrap();
            let batch = of_service.iter_mut().find(|b| b.batch_id == taken.batch_id).unwrap();
            let event = Event::Outcome { attempt: taken.attempt, outcome: Outcome::NotSent };
            batch.progress = transition(batch.progress, event).unwrap();
        }
        Ok(())
    }
}

fn id(number: u32) -> HeaderId {
    let mut bytes = [0; 64];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    HeaderId::from_bytes(bytes)
}

fn number(submission: &Submission<ServiceScopeId>) -> u32 {
    u32::from_str_radix(&submission.batch_header()[..8], 16).unwrap()
}

fn wake_up() -> WakeUp {
    WakeUp::new(|| ()).unwrap()
}

fn queue(memory: &Memory, wake_up: WakeUp) -> BatchQueue<ServiceScopeId, Memory> {
    let options = QueueOptions { clock: memory.clock.clone(), ..QueueOptions::default() };
    BatchQueue::new(memory.clone(), wake_up, options)
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
fn a_service_with_a_hundred_thousand_batches_keeps_no_other_waiting() {
    let memory = Memory::default();
    for number in 0..100_000 {
        memory.add("busy::one", number);
    }
    for number in 0..99 {
        memory.add(&format!("s::{number}"), 200_000 + number);
    }
    let first_round: Vec<u32> =
        queue(&memory, wake_up()).take(100).map(|submission| number(&submission)).collect();
    let single = first_round.iter().filter(|number| **number >= 200_000).count();
    assert_eq!((single, first_round.contains(&0)), (99, true));
}

#[test]
fn a_round_has_at_most_one_batch_of_a_service() {
    let memory = Memory::default();
    for number in 0..10 {
        memory.add("a::b", number);
    }
    let mut queue = queue(&memory, wake_up());
    assert_eq!(queue.next().map(|submission| number(&submission)), Some(0));
    assert!(queue.next().is_none());
    assert_eq!(queue.held(), 0);
}

#[test]
fn every_service_has_its_turn_when_there_are_more_than_a_round_holds() {
    let memory = Memory::default();
    for number in 0..250 {
        memory.add(&format!("s::{number:03}"), number);
        memory.add(&format!("s::{number:03}"), 1_000 + number);
    }
    let mut queue = queue(&memory, wake_up());
    // Each is committed at once, so that the first services are soon ready again.
    let mut order = Vec::new();
    while order.len() < 500 {
        let submission = queue.next().unwrap();
        memory.record(&submission, accepted);
        memory.record(&submission, committed);
        order.push(number(&submission));
    }
    let first_turn: Vec<u32> = order[..250].iter().map(|number| number % 1_000).collect();
    let mut services = first_turn.clone();
    services.sort_unstable();
    services.dedup();
    assert_eq!(services.len(), 250, "{first_turn:?}");
}

#[test]
fn a_service_that_was_woken_is_looked_at_before_the_next_poll() {
    let memory = Memory::default();
    let wake_up = wake_up();
    let mut queue = queue(&memory, wake_up.clone());
    assert!(queue.next().is_none());
    memory.add("a::b", 1);
    assert!(queue.next().is_none(), "nobody has said so, and it is not yet time to look");
    wake_up.wake("a::b".parse().unwrap());
    assert_eq!(queue.next().map(|submission| number(&submission)), Some(1));
}

#[test]
fn what_nobody_woke_the_queue_for_is_found_at_the_next_poll() {
    let memory = Memory::default();
    let mut queue = queue(&memory, wake_up());
    assert!(queue.next().is_none());
    memory.add("a::b", 1);
    memory.clock.advance(Duration::from_secs(1));
    assert_eq!(queue.next().map(|submission| number(&submission)), Some(1));
}

#[test]
fn a_delayed_batch_comes_again_when_its_delay_is_over() {
    let memory = Memory::default();
    memory.add("a::b", 1);
    memory.add("a::b", 2);
    let mut queue = queue(&memory, wake_up());
    memory.record(&queue.next().unwrap(), busy);
    memory.clock.advance(Duration::from_secs(14));
    assert!(queue.next().is_none());
    memory.clock.advance(Duration::from_secs(1));
    assert_eq!(queue.next().map(|submission| number(&submission)), Some(1));
}

#[test]
fn a_free_service_goes_on_with_its_next_batch() {
    let memory = Memory::default();
    let wake_up = wake_up();
    for number in 0..50 {
        memory.add("a::b", number);
    }
    let mut queue = queue(&memory, wake_up.clone());
    for expected in 0..50 {
        let submission = queue.next().unwrap();
        assert_eq!(number(&submission), expected);
        memory.record(&submission, accepted);
        memory.record(&submission, committed);
        wake_up.wake("a::b".parse().unwrap());
    }
}

#[test]
fn services_that_are_woken_all_the_time_keep_no_other_waiting() {
    let memory = Memory::default();
    let wake_up = wake_up();
    for number in 0..100 {
        for again in 0..20 {
            memory.add(&format!("woken::{number}"), 1_000 * again + number);
        }
    }
    memory.add("zzz::quiet", 77_777);
    let mut queue = queue(&memory, wake_up.clone());
    let mut given = 0;
    loop {
        for number in 0..100 {
            wake_up.wake(format!("woken::{number}").parse().unwrap());
        }
        let submission = queue.next().unwrap();
        given += 1;
        if number(&submission) == 77_777 {
            break;
        }
        memory.record(&submission, accepted);
        memory.record(&submission, committed);
    }
    assert!(given < 1_000, "{given} others went first");
}

#[test]
fn a_service_that_the_ledger_cannot_have_is_never_marked() {
    let mut store = MockRoundStore::new();
    let named: ServiceId = "a::b".parse().unwrap();
    store.expect_ready_services().returning(move |_, _| Ok(vec![named.clone()]));
    store.expect_take_round().never();
    let mut queue: BatchQueue<GlobalScopeId, _> =
        BatchQueue::new(store, wake_up(), QueueOptions::default());
    assert!(queue.next().is_none());
}

#[test]
fn a_store_that_fails_is_asked_again_and_nothing_that_was_woken_is_forgotten() {
    let mut store = MockRoundStore::new();
    store.expect_ready_services().returning(|_, _| Ok(Vec::new()));
    let mut calls = 0;
    store.expect_take_round().times(2).returning(move |services| {
        calls += 1;
        assert_eq!(services, ["a::b".parse().unwrap()]);
        match calls {
            1 => Err(BatchError::Unavailable("gone".to_owned())),
            _ => Ok(vec![TakenBatch {
                service_id: services[0].clone(),
                batch_id: id(7),
                attempt: 1,
                epoch: 0,
                serialized_batch: vec![],
            }]),
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
fn an_idle_queue_asks_the_store_once_an_interval() {
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
fn a_queue_that_is_dropped_gives_back_what_it_holds() {
    let memory = Memory::default();
    for (number, service) in (1..).zip(["a::a", "a::b", "a::c"]) {
        memory.add(service, number);
    }
    let mut queue = queue(&memory, wake_up());
    assert_eq!(number(&queue.next().unwrap()), 1);
    assert_eq!(queue.held(), 2);
    drop(queue);

    let batches = memory.batches.lock().unwrap();
    let states: Vec<BatchState> = batches.values().flatten().map(|b| b.progress.state).collect();
    assert_eq!(states, [BatchState::Submitting, BatchState::Delayed, BatchState::Delayed]);
}

#[test]
fn what_was_held_for_too_long_is_given_back_and_taken_anew() {
    let memory = Memory::default();
    for (number, service) in (1..).zip(["a::a", "a::b"]) {
        memory.add(service, number);
    }
    let mut queue = queue(&memory, wake_up());
    assert_eq!(number(&queue.next().unwrap()), 1);
    memory.clock.advance(QueueOptions::default().hold_limit);
    let second = queue.next().unwrap();
    assert_eq!((number(&second), second.attempt_id().unwrap().attempt), (2, 2));
}
