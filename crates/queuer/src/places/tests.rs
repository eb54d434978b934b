use std::{collections::HashMap, time::Duration};

use grid_batch_core::evidence::Evidence;
use grid_batch_core::{BatchError, ManualClock};
use grid_batch_work::{Place, PollCause, SeenCommit};

use super::*;

type Woken = Arc<Mutex<Vec<String>>>;

/// A window of a fixed size, and the services that were woken.
fn window(size: usize) -> (Places, Arc<ManualClock>, Woken) {
    let clock = Arc::new(ManualClock::default());
    let woken = Woken::default();
    let sink = Arc::clone(&woken);
    let wake = move |service: ServiceId| sink.lock().unwrap().push(service.to_string());
    let limits = PlaceLimits { initial: size, ..PlaceLimits::window(size) };
    let table = WorkTable::default();
    (Places::new(limits, table, Arc::<ManualClock>::clone(&clock), wake), clock, woken)
}

fn service(name: &str) -> ServiceId {
    name.parse().unwrap()
}

fn id(number: usize) -> ItemId {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    ItemId::from_bytes(bytes)
}

/// Asks for places and takes a batch with each, numbered from `first`. Returns their number.
fn take(window: &Places, name: &str, wanted: usize, first: usize) -> usize {
    let admitted = window.admit(&service(name), wanted);
    (first..first + admitted).for_each(|number| tell_taken(window, name, number, 1));
    admitted
}

fn tell_taken(window: &Places, name: &str, number: usize, attempt: u32) {
    let batch = TakenBatch {
        service_id: service(name),
        batch_id: id(number),
        attempt,
        epoch: 1,
        serialized_batch: Vec::new(),
        deadline: None,
        trace: None,
        joins_list: false,
    };
    window.taken(&service(name), &[&batch]);
}

fn record(window: &Places, name: &str, number: usize, state: BatchState, event: Event) {
    window.recorded(&Change::new(service(name), id(number), event), state);
}

/// Commits a batch, as seen by the poller.
fn commit(window: &Places, name: &str, number: usize) {
    let mut work = window.0.table.lock();
    let place = work.batch(name, &id(number).to_string()).and_then(|it| it.sending.place.as_ref());
    if let Some(Place { attempt: Some(_), since: Some(since), .. }) = place {
        let committed_by = window.0.clock.monotonic().since(since.at());
        let cause = PollCause::Trigger;
        let seen = SeenCommit { pending_until: None, committed_by, cause };
        work.times.committed(name, seen);
    }
    drop(work);
    let event = Event::status(grid_batch_core::batches::LedgerStatus::Committed);
    record(window, name, number, BatchState::Committed, event);
}

fn outcome(outcome: Outcome) -> Event {
    Event::Outcome { attempt: 1, outcome }
}

fn woken(woken: &Woken) -> Vec<String> {
    woken.lock().unwrap().drain(..).collect()
}

#[test]
fn place_is_kept_until_the_batch_has_ended() {
    let (window, _, _) = window(3);
    assert_eq!(take(&window, "a", 10, 0), 3);
    window.submission_ended(&service("a"));
    record(&window, "a", 0, BatchState::Pending, outcome(Outcome::Accepted));
    assert_eq!(take(&window, "a", 10, 3), 0);
    commit(&window, "a", 0);
    commit(&window, "a", 0);
    assert_eq!(take(&window, "a", 10, 3), 1);
}

#[test]
fn batch_that_waits_or_is_held_has_no_place() {
    let (window, _, _) = window(3);
    assert_eq!(take(&window, "a", 3, 0), 3);
    record(&window, "a", 0, BatchState::Delayed, outcome(Outcome::NotSent));
    let absent =
        Event::Evidence { attempt: 1, evidence: grid_batch_core::evidence::Evidence::Absent };
    record(&window, "a", 1, BatchState::Absent, absent);
    let hold = Some("no evidence".to_owned());
    let held = Change { hold, ..Change::new(service("a"), id(2), outcome(Outcome::Ambiguous)) };
    window.recorded(&held, BatchState::InDoubt);
    assert_eq!(window.counts(), InFlightCounts { under_way: 0, overdue: 0, window: 3, largest: 3 });
}

#[test]
fn busy_ledger_lowers_the_window_once_for_a_burst() {
    let (window, _, _) = window(100);
    assert_eq!(take(&window, "a", 100, 0), 100);
    for number in 60..100 {
        record(&window, "a", number, BatchState::Delayed, outcome(Outcome::Busy));
    }
    assert_eq!(
        window.counts(),
        InFlightCounts { under_way: 60, overdue: 0, window: 75, largest: 100 }
    );
    assert_eq!(take(&window, "a", 100, 200), 15);
    for number in 200..215 {
        record(&window, "a", number, BatchState::Delayed, outcome(Outcome::Busy));
    }
    assert_eq!(take(&window, "a", 100, 300), 0, "nothing more is sent to the busy ledger");
    (0..20).for_each(|number| commit(&window, "a", number));
    assert!(take(&window, "a", 100, 400) >= 10);
}

#[test]
fn service_alone_gets_all() {
    let (window, _, _) = window(250);
    assert_eq!(take(&window, "a", 1_000, 0), 250);
}

#[test]
fn services_share_the_window_evenly() {
    let (window, _, woken_services) = window(30);
    assert_eq!(take(&window, "a", 100, 0), 30);
    assert_eq!(take(&window, "b", 100, 1_000), 0);
    assert_eq!(take(&window, "c", 100, 2_000), 0);
    let mut used = HashMap::from([("a", 30), ("b", 0), ("c", 0)]);
    let mut next = 5_000;
    // The batches of the first service end one after the other, and each service takes what it can.
    for ended in 0..20 {
        commit(&window, "a", ended);
        *used.get_mut("a").unwrap() -= 1;
        for name in woken(&woken_services) {
            let taken = take(&window, &name, 100, next);
            next += taken;
            *used.get_mut(&*name).unwrap() += taken;
        }
    }
    assert_eq!(used, HashMap::from([("a", 10), ("b", 10), ("c", 10)]));
}

#[test]
fn services_with_one_batch_do_not_wait_behind_one_with_many() {
    const LARGEST: usize = 50;
    let (window, _, woken_services) = window(LARGEST);
    assert_eq!(take(&window, "hog", 10_000, 0), LARGEST);
    let names: Vec<String> = (0..20).map(|number| format!("s{number}")).collect();
    for name in &names {
        assert_eq!(take(&window, name, 1, 99_000), 0);
    }
    let (mut sent, mut next) = (Vec::new(), LARGEST);
    // One batch of the first service ends at a time, the oldest first.
    for ended in 0..names.len() {
        commit(&window, "hog", ended);
        for name in woken(&woken_services) {
            let wanted = if name == "hog" { 10_000 } else { 1 };
            let taken = take(&window, &name, wanted, 100_000 + next);
            next += taken;
            (0..taken).for_each(|_| sent.push(name.clone()));
        }
    }
    assert_eq!(sent, names, "each end lets another service send");
}

#[test]
fn more_services_than_places_take_turns() {
    let (window, _, woken_services) = window(2);
    let names: Vec<String> = (0..10).map(|number| format!("s{number}")).collect();
    let mut under_way = Vec::new();
    let mut served = HashMap::<String, usize>::new();
    let mut asking = names.clone();
    for next in 0..300 {
        for name in asking {
            if take(&window, &name, 1, next * 100 + under_way.len()) == 1 {
                under_way.push((name.clone(), next * 100 + under_way.len()));
                *served.entry(name).or_default() += 1;
            }
        }
        let (name, number) = under_way.remove(0);
        commit(&window, &name, number);
        // The service whose batch has ended asks again at once.
        asking = [vec![name], woken(&woken_services)].concat();
    }
    let (least, most) = (served.values().min().unwrap(), served.values().max().unwrap());
    assert!(served.len() == 10 && *most <= least + 1, "{served:?}");
}

#[test]
fn service_that_has_nothing_to_send_gives_its_turn_to_the_next() {
    let (window, clock, woken_services) = window(1);
    assert_eq!(take(&window, "a", 1, 0), 1);
    for name in ["b", "c", "d"] {
        assert_eq!(take(&window, name, 1, 99), 0);
    }
    commit(&window, "a", 0);
    assert_eq!(woken(&woken_services), ["b"]);
    assert_eq!(take(&window, "e", 1, 99), 0, "it is the turn of b");
    assert_eq!(window.admit(&service("b"), 1), 1);
    window.release(&service("b"), 1);
    assert_eq!(woken(&woken_services), ["c"]);
    clock.advance(Duration::from_secs(2));
    assert_eq!(take(&window, "f", 1, 99), 0, "c did not ask in time, and d is the next");
    assert_eq!(woken(&woken_services), ["d"]);
    assert_eq!(take(&window, "d", 1, 1), 1);
}

#[test]
fn place_that_is_put_back_wakes_no_service() {
    let (window, _, woken_services) = window(1);
    assert_eq!(window.admit(&service("a"), 1), 1);
    assert_eq!(window.admit(&service("b"), 1), 0);
    window.put_back(&service("a"), 1);
    assert!(woken(&woken_services).is_empty());
    assert_eq!(window.admit(&service("a"), 1), 1, "it keeps its turn");
}

#[test]
fn batches_that_do_not_end_let_one_more_be_sent() {
    let (window, clock, _) = window(2);
    assert_eq!(take(&window, "a", 9, 0), 2);
    clock.advance(Duration::from_secs(29));
    assert_eq!(take(&window, "a", 9, 2), 0);
    clock.advance(Duration::from_secs(1));
    assert_eq!(take(&window, "a", 9, 2), 1);
    assert_eq!(take(&window, "a", 9, 3), 0);
    commit(&window, "a", 2);
    assert_eq!(take(&window, "a", 9, 3), 2, "those before it have no place any more");
}

#[test]
fn ledger_that_ends_nothing_gets_less_and_less() {
    let (window, clock, _) = window(2);
    assert_eq!(take(&window, "a", 1, 0), 1);
    commit(&window, "a", 0);
    assert_eq!(take(&window, "a", 9, 1), 2);
    // Each further one waits twice as long, up to a limit.
    for (seconds, number) in [(2, 3), (2, 4), (4, 5), (8, 6), (16, 7), (30, 8), (30, 9)] {
        clock.advance(Duration::from_secs(seconds) - Duration::from_millis(1));
        assert_eq!(take(&window, "a", 9, number), 0, "{number}");
        clock.advance(Duration::from_millis(1));
        assert_eq!(take(&window, "a", 9, number), 1, "{number}");
        assert_eq!(take(&window, "a", 9, number + 1), 0);
    }
}

#[test]
fn batches_that_never_end_leave_the_window() {
    let (window, clock, woken_services) = window(8);
    assert_eq!(take(&window, "a", 1, 50), 1);
    commit(&window, "a", 50);
    assert_eq!(take(&window, "a", 8, 0), 8);
    clock.advance(Duration::from_secs(2));
    assert_eq!(take(&window, "b", 60, 100), 1, "one is tried");
    clock.advance(Duration::from_millis(200));
    assert_eq!(take(&window, "b", 60, 101), 0);
    commit(&window, "b", 100);
    assert_eq!(woken(&woken_services), ["b"]);
    assert_eq!(take(&window, "b", 60, 101), 8, "those before it have no place any more");
    let counts = InFlightCounts { under_way: 16, overdue: 8, window: 8, largest: 8 };
    assert_eq!(window.counts(), counts);

    // One of them ends after all, one is found again, and one is sent again.
    commit(&window, "a", 0);
    window.refresh(|| Ok((1..8).map(|number| (service("a"), id(number))).collect())).unwrap();
    tell_taken(&window, "a", 1, 2);
    assert_eq!((window.counts().overdue, window.counts().under_way), (6, 7));
}

#[test]
fn batches_of_a_slow_ledger_keep_their_places() {
    let (window, clock, _) = window(8);
    assert_eq!(take(&window, "a", 4, 0), 4);
    clock.advance(Duration::from_secs(10));
    assert_eq!(take(&window, "a", 4, 4), 4);
    clock.advance(Duration::from_secs(20));
    // A block contains some of the earlier batches and some of the later ones.
    [0, 1, 4].iter().for_each(|number| commit(&window, "a", *number));
    assert_eq!(window.counts().overdue, 0);
    assert_eq!(take(&window, "a", 9, 10), 3);
}

#[test]
fn first_commits_of_a_slow_ledger_free_no_places() {
    let (window, clock, _) = window(8);
    assert_eq!(take(&window, "a", 8, 0), 8);
    clock.advance(Duration::from_secs(150));
    commit(&window, "a", 7);
    assert_eq!(window.counts().overdue, 0);
}

#[test]
fn batches_leave_the_window_without_a_poller() {
    let (window, clock, _) = window(8);
    assert_eq!(take(&window, "a", 4, 0), 4);
    clock.advance(Duration::from_secs(4));
    assert_eq!(take(&window, "a", 1, 4), 1);
    clock.advance(Duration::from_secs(1));
    let event = Event::status(grid_batch_core::batches::LedgerStatus::Committed);
    record(&window, "a", 4, BatchState::Committed, event);
    assert_eq!(window.counts().overdue, 4, "each is under way for more than four times as long");
}

#[test]
fn batches_of_an_earlier_run_are_under_way() {
    let (window, _, _) = window(5);
    window.refresh(|| Ok((0..4).map(|number| (service("a"), id(number))).collect())).unwrap();
    assert_eq!(take(&window, "b", 9, 10), 1);
    window.refresh(|| Ok(vec![(service("b"), id(10))])).unwrap();
    assert_eq!(window.counts().under_way, 1, "those that ended elsewhere are gone");
}

#[test]
fn changes_during_a_reading_of_the_store_are_kept() {
    let (window, _, _) = window(5);
    assert_eq!(take(&window, "a", 2, 0), 2);
    assert_eq!(window.admit(&service("a"), 1), 1);
    let found = || {
        commit(&window, "a", 0);
        tell_taken(&window, "a", 2, 1);
        Ok(vec![(service("a"), id(0)), (service("a"), id(1))])
    };
    window.refresh(found).unwrap();
    assert_eq!(window.counts().under_way, 2, "the second and the third one");
    // The third one is found before the queue reports it.
    assert_eq!(window.admit(&service("a"), 1), 1);
    window.refresh(|| Ok((1..4).map(|number| (service("a"), id(number))).collect())).unwrap();
    tell_taken(&window, "a", 3, 1);
    assert_eq!(window.admit(&service("a"), 9), 2);
}

#[test]
fn batch_taken_again_before_its_loss_is_known_stays() {
    let (window, _, _) = window(5);
    assert_eq!(take(&window, "a", 2, 0), 2);
    assert_eq!(window.admit(&service("a"), 1), 1);
    tell_taken(&window, "a", 0, 2);
    let lost = Event::Evidence { attempt: 1, evidence: Evidence::Lost };
    record(&window, "a", 0, BatchState::Absent, lost);
    assert_eq!(window.counts().under_way, 2);
    let lost = Event::Evidence { attempt: 2, evidence: Evidence::Lost };
    record(&window, "a", 0, BatchState::Absent, lost);
    assert_eq!(window.counts().under_way, 1);
    assert_eq!(window.admit(&service("a"), 9), 4);
}

#[test]
fn batches_stay_under_way_if_the_store_cannot_be_read() {
    let (window, _, _) = window(5);
    assert_eq!(take(&window, "a", 2, 0), 2);
    let error = || Err(BatchError::Unavailable("no connection".to_owned()));
    window.refresh(error).unwrap_err();
    assert_eq!(window.counts().under_way, 2);
}
