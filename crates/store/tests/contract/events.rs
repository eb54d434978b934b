//! Events are written with each change, and readers get each event once and in order.

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::ItemId;
use grid_batch_core::batches::{
    BatchState, Change, Decision, Event, IntakeStore, LedgerStatus, NewBatch, TraceContext,
};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::events::{
    BatchEvent, EventCursor, EventFilter, EventKind, EventPosition, EventReadError, EventStore,
};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::RoundStore;
use grid_batch_store::{ClaimStore, Store, StoreOptions};

use crate::fixture::{
    Database, StoreExt, TestStore, batch, by_program, happened, id, on_both, service,
};

on_both! {
    history_has_each_change_of_a_batch,
    trace_of_a_batch_is_stored_with_it,
    actions_of_operators_are_events,
    late_commit_is_an_event,
    change_that_changes_nothing_is_no_event,
    pages_of_any_size_give_the_same_events,
    filtered_page_goes_past_other_events,
    end_of_a_batch_is_read_once_and_only_if_selected,
    latest_position_is_after_all_events,
    removed_batches_take_their_events_along,
    cursor_before_removed_events_is_gone,
    batch_with_a_young_event_is_kept,
    restored_database_refuses_earlier_cursors,
    cursor_of_another_form_is_refused,
    listener_is_called_after_commits_with_events,
    store_without_events_writes_none,
    reader_gets_all_events_in_order_while_several_write,
}

/// Shortens events to kind, state and attempt.
fn told(events: &[BatchEvent]) -> Vec<(EventKind, BatchState, u32)> {
    events.iter().map(|event| (event.kind, event.state, event.attempt)).collect()
}

fn trace_of_a_batch_is_stored_with_it(db: &Database) {
    let store = db.open();
    let trace: TraceContext =
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 vendor=1".parse().unwrap();
    let traced = NewBatch { trace: Some(trace.clone()), ..batch("a::b", 1) };
    store.add_all(&[traced, batch("a::b", 2)]);
    assert_eq!(store.take_one("a::b").trace.as_ref(), Some(&trace));
    let traces = |events: &[BatchEvent]| -> Vec<Option<TraceContext>> {
        events.iter().map(|event| event.trace.clone()).collect()
    };
    assert_eq!(traces(&history(&store, 1)), [Some(trace.clone()), Some(trace.clone())]);
    assert_eq!(traces(&history(&store, 2)), [None]);
    let (all, _) = read_from(&store, EventPosition::Oldest, &EventFilter::default(), 10);
    assert_eq!(traces(&all), [Some(trace.clone()), None, Some(trace)]);
}

fn history(store: &TestStore, number: u64) -> Vec<BatchEvent> {
    store.history(&service("a::b"), &id(number)).unwrap().unwrap()
}

/// Reads in pages from a position to the end of the feed.
fn read_from(
    store: &Store,
    from: EventPosition,
    filter: &EventFilter,
    limit: usize,
) -> (Vec<BatchEvent>, EventCursor) {
    let (mut position, mut events) = (from, Vec::new());
    loop {
        let page = store.events(&position, filter, limit).unwrap().unwrap();
        assert!(page.events.len() <= limit);
        events.extend(page.events.into_iter().map(|event| event.event));
        if !page.more {
            return (events, page.next);
        }
        position = EventPosition::After(page.next);
    }
}

fn all(store: &Store) -> Vec<BatchEvent> {
    read_from(store, EventPosition::Oldest, &EventFilter::default(), 1_000).0
}

fn after(store: &Store, cursor: &EventCursor) -> (Vec<BatchEvent>, EventCursor) {
    read_from(store, EventPosition::After(cursor.clone()), &EventFilter::default(), 1_000)
}

fn history_has_each_change_of_a_batch(db: &Database) {
    let store = db.open();
    let instance = Some(store.worker_of_all().instance().to_string());
    let stored_at = db.later(1);
    store.add_all(&[batch("a::b", 1)]);
    db.later(1);
    store.outcome(&store.take_one("a::b"), Outcome::Busy);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Ambiguous);
    store.evidence(&taken, Evidence::Absent);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    store.status(&taken, LedgerStatus::Pending);
    store.status(&taken, LedgerStatus::Valid);
    let ended_at = db.later(1);
    store.status(&taken, LedgerStatus::Committed);
    let events = history(&store, 1);
    assert_eq!(
        told(&events),
        [
            (EventKind::Accepted, BatchState::New, 0),
            (EventKind::Submitted, BatchState::Submitting, 1),
            (EventKind::Answered, BatchState::Delayed, 1),
            (EventKind::Submitted, BatchState::Submitting, 2),
            (EventKind::Answered, BatchState::InDoubt, 2),
            (EventKind::Evidence, BatchState::Absent, 2),
            (EventKind::Submitted, BatchState::Submitting, 3),
            (EventKind::Answered, BatchState::Pending, 3),
            (EventKind::Status, BatchState::Valid, 3),
            (EventKind::Status, BatchState::Committed, 3),
        ]
    );
    assert!(events.iter().all(|event| event.instance == instance));
    assert_eq!((events[0].at, events[9].at), (stored_at, ended_at));
    let details: Vec<_> = events.iter().filter_map(|event| event.detail.as_deref()).collect();
    assert_eq!(details, ["busy", "outcome unknown", "absent"]);
    assert_eq!(all(&store), events);
    assert_eq!(store.history(&service("a::b"), &id(2)).unwrap(), None);
}

fn actions_of_operators_are_events(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "no evidence");
    let of = |number| (service("a::b"), id(number));
    let (name, waiting) = of(2);
    store.hold_batch(&name, &waiting, "look first").unwrap();
    store.release_batch(&name, &waiting, Some("looked")).unwrap();
    store.decide(&name, &taken.batch_id, 1, Decision::Committed).unwrap();
    let taken = store.take_one("a::b");
    let not_sent = Event::Outcome { attempt: taken.attempt, outcome: Outcome::NotSent };
    let retry_at = Some(db.later(100));
    store.record_one(Change { retry_at, ..happened(&taken, not_sent) });
    store.end_delays(Some(&name)).unwrap();
    let end = |events: &[BatchEvent]| -> Vec<(EventKind, BatchState, Option<String>)> {
        events.iter().map(|it| (it.kind, it.state, it.detail.clone())).collect()
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        end(&history(&store, 1)[3..]),
        [
            (EventKind::Held, BatchState::InDoubt, text("no evidence")),
            (EventKind::Decided, BatchState::Committed, text("committed")),
        ]
    );
    assert_eq!(
        end(&history(&store, 2)),
        [
            (EventKind::Accepted, BatchState::New, None),
            (EventKind::Held, BatchState::New, text("look first")),
            (EventKind::Released, BatchState::New, text("looked")),
            (EventKind::Submitted, BatchState::Submitting, None),
            (EventKind::Answered, BatchState::Delayed, text("not sent")),
            (EventKind::DelayEnded, BatchState::Delayed, None),
        ]
    );
}

fn late_commit_is_an_event(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Rejected);
    for _ in 0..2 {
        store.status(&taken, LedgerStatus::Committed);
    }
    let events = history(&store, 1);
    assert_eq!(
        told(&events[2..]),
        [
            (EventKind::Answered, BatchState::Invalid, 1),
            (EventKind::CommittedAfterInvalid, BatchState::Invalid, 1),
        ]
    );
}

fn change_that_changes_nothing_is_no_event(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    store.status(&taken, LedgerStatus::Pending);
    store.outcome(&taken, Outcome::Ambiguous);
    store.add(&[&[batch("a::b", 1)]]).unwrap();
    assert_eq!(history(&store, 1).len(), 3);
}

/// Some batches of three services, with their ends.
fn write_some(store: &TestStore) {
    for number in 1..=10 {
        let list = ["a::b", "a::c", "a::d"].map(|name| batch(name, number));
        store.add_all(&list);
    }
    for _ in 0..4 {
        let taken = store.take(&["a::b", "a::c"]);
        let record = |event: &dyn Fn(u32) -> Event| {
            let changes: Vec<Change> =
                taken.iter().map(|taken| happened(taken, event(taken.attempt))).collect();
            store.record(&changes).unwrap();
        };
        record(&|attempt| Event::Outcome { attempt, outcome: Outcome::Accepted });
        record(&|_| Event::status(LedgerStatus::Committed));
    }
}

fn pages_of_any_size_give_the_same_events(db: &Database) {
    let store = db.open();
    write_some(&store);
    let expected = all(&store);
    assert_eq!(expected.len(), 30 + 4 * 2 * 3);
    for limit in [1, 2, 3, 7, 53, 54] {
        let (events, _) = read_from(&store, EventPosition::Oldest, &EventFilter::default(), limit);
        assert_eq!(events, expected, "pages of {limit}");
    }
    let page = store.events(&EventPosition::Oldest, &EventFilter::default(), 9).unwrap().unwrap();
    for (index, event) in page.events.iter().enumerate() {
        assert_eq!(after(&store, &event.cursor).0, expected[index + 1..], "after event {index}");
    }
}

fn filtered_page_goes_past_other_events(db: &Database) {
    let store = db.open();
    write_some(&store);
    let filter = EventFilter {
        services: BTreeSet::from([service("a::c")]),
        kinds: BTreeSet::from([EventKind::Status, EventKind::Answered]),
    };
    let (events, cursor) = read_from(&store, EventPosition::Oldest, &filter, 2);
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Answered, EventKind::Status].repeat(4));
    assert!(events.iter().all(|event| event.service_id == service("a::c")));
    assert!(after(&store, &cursor).0.is_empty(), "everything was read");
}

fn end_of_a_batch_is_read_once_and_only_if_selected(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Rejected);
    store.status(&taken, LedgerStatus::Committed);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    store.status(&taken, LedgerStatus::Committed);
    let read = |kinds: &[EventKind], limit| {
        let filter =
            EventFilter { kinds: kinds.iter().copied().collect(), ..EventFilter::default() };
        told(&read_from(&store, EventPosition::Oldest, &filter, limit).0)
    };
    let first = (EventKind::Ended, BatchState::Invalid, 1);
    let second = (EventKind::Ended, BatchState::Committed, 1);
    for limit in [1, 9] {
        assert_eq!(read(&[EventKind::Ended], limit), [first, second]);
    }
    let late = (EventKind::CommittedAfterInvalid, BatchState::Invalid, 1);
    let selected = [EventKind::Ended, EventKind::Answered, EventKind::CommittedAfterInvalid];
    let answered = (EventKind::Answered, BatchState::Pending, 1);
    assert_eq!(read(&selected, 9), [first, late, answered, second]);
    assert!(all(&store).iter().all(|event| event.kind != EventKind::Ended));
}

fn latest_position_is_after_all_events(db: &Database) {
    let store = db.open();
    let latest = || {
        let page = store.events(&EventPosition::Latest, &EventFilter::default(), 9);
        let page = page.unwrap().unwrap();
        assert!(page.events.is_empty() && !page.more);
        page.next
    };
    let first = latest();
    store.add_all(&[batch("a::b", 1)]);
    let second = latest();
    store.add_all(&[batch("a::b", 2)]);
    let ids = |cursor| -> Vec<ItemId> {
        after(&store, cursor).0.iter().map(|event| event.batch_id).collect()
    };
    assert_eq!(ids(&first), [id(1), id(2)]);
    assert_eq!(ids(&second), [id(2)]);
}

fn removed_batches_take_their_events_along(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    store.commit_next("a::b");
    assert_eq!(store.remove_in_steps(db.later(1), 100), 1);
    assert_eq!(store.history(&service("a::b"), &id(1)).unwrap(), None);
    let left = "select count(*) as number from batch_events";
    assert_eq!(db.number(left), 1, "the open batch keeps its own");
    assert_eq!(told(&history(&store, 2)), [(EventKind::Accepted, BatchState::New, 0)]);
}

/// The position after all events, at a moment when no transaction of another test is running. A position that does not
/// know whether such a transaction has written events that were removed would be refused.
fn read_settled(store: &Store) -> EventCursor {
    let started = Instant::now();
    loop {
        let (_, next) = read_from(store, EventPosition::Oldest, &EventFilter::default(), 9);
        if next.as_str().split('-').count() == 4 {
            return next;
        }
        assert!(started.elapsed().as_secs() < 30, "{next}");
        thread::yield_now();
    }
}

fn cursor_before_removed_events_is_gone(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let page = store.events(&EventPosition::Oldest, &EventFilter::default(), 1).unwrap().unwrap();
    store.commit_next("a::b");
    let recent = read_settled(&store);
    store.remove_in_steps(db.later(1), 100);
    store.commit_next("a::b");
    let read = |cursor: &EventCursor| {
        store.events(&EventPosition::After(cursor.clone()), &EventFilter::default(), 9).unwrap()
    };
    let gone = read(&page.next).unwrap_err();
    let EventReadError::Gone { oldest } = gone else { panic!("{gone:?}") };
    let (left, _) = after(&store, &oldest);
    assert_eq!(told(&left).last(), Some(&(EventKind::Status, BatchState::Committed, 1)));
    let unread = read(&recent).unwrap().events;
    assert_eq!(unread.len(), 3, "nothing was removed after it");
    assert_eq!(all(&store), left);
}

fn batch_with_a_young_event_is_kept(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Rejected);
    let recent = read_settled(&store);
    let before = db.later(100);
    db.later(1);
    store.status(&taken, LedgerStatus::Committed);
    assert_eq!(store.count_removable(before, None, 100).unwrap().batches, 0);
    assert_eq!(store.remove_in_steps(before, 100), 0);
    let (unread, _) = after(&store, &recent);
    assert_eq!(told(&unread), [(EventKind::CommittedAfterInvalid, BatchState::Invalid, 1)]);
    assert_eq!(store.remove_in_steps(db.later(1), 100), 1);
}

fn restored_database_refuses_earlier_cursors(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let (events, cursor) = after(&store, &"e1.0.oldest".parse().unwrap());
    assert_eq!(events.len(), 1);
    db.restored().mark_restored(true, &by_program()).unwrap();
    let position = EventPosition::After(cursor);
    let gone = store.events(&position, &EventFilter::default(), 9).unwrap().unwrap_err();
    let EventReadError::Gone { oldest } = gone else { panic!("{gone:?}") };
    let (events, _) = after(&store, &oldest);
    assert_eq!(
        told(&events),
        [
            (EventKind::Accepted, BatchState::New, 0),
            (EventKind::DatabaseRestored, BatchState::InDoubt, 0),
        ]
    );
}

fn cursor_of_another_form_is_refused(db: &Database) {
    let store = db.open();
    for text in ["e2.0.oldest", "e1", "e1.0", "e1.0.1-2", "e1.-1.oldest", "e1.0.oldest.1-1-1.1"] {
        let position = EventPosition::After(text.parse().unwrap());
        let refused = store.events(&position, &EventFilter::default(), 9).unwrap();
        assert_eq!(refused, Err(EventReadError::NotACursor), "{text}");
    }
}

fn listener_is_called_after_commits_with_events(db: &Database) {
    let store = db.open();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    store.on_events(Arc::new(move || {
        count.fetch_add(1, Ordering::AcqRel);
    }));
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    store.status(&taken, LedgerStatus::Pending);
    assert_eq!(calls.load(Ordering::Acquire), 3, "the last change changed nothing");
}

fn store_without_events_writes_none(db: &Database) {
    let store = db.open_with(StoreOptions { writes_events: false, ..db.options() });
    store.add_all(&[batch("a::b", 1)]);
    store.commit_next("a::b");
    assert_eq!(all(&store), []);
    assert_eq!(store.history(&service("a::b"), &id(1)).unwrap(), Some(Vec::new()));
}

fn reader_gets_all_events_in_order_while_several_write(db: &Database) {
    const WRITERS: u64 = 4;
    const EACH: u64 = 20;
    let store = db.open();
    let done = AtomicBool::new(false);
    let read = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut read, mut position) = (Vec::new(), EventPosition::Oldest);
            loop {
                let was_done = done.load(Ordering::Acquire);
                let (events, next) = read_from(&store, position, &EventFilter::default(), 3);
                read.extend(events);
                if was_done {
                    return read;
                }
                position = EventPosition::After(next);
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let store = db.open();
                scope.spawn(move || {
                    for number in writer * EACH..(writer + 1) * EACH {
                        let own = format!("own::{writer}");
                        store.add_all(&[batch("a::b", number), batch(&own, number)]);
                        if number % 4 == 0 {
                            store.commit_next(&own);
                        }
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
        reader.join().unwrap()
    });
    let ids: BTreeSet<_> = read.iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), read.len(), "an event was read twice");
    let commits = WRITERS * EACH / 4;
    assert_eq!(read.len() as u64, 2 * WRITERS * EACH + 3 * commits);
    let open: Vec<ItemId> = store
        .open_batches(&service("a::b"), 1_000)
        .unwrap()
        .into_iter()
        .map(|batch| batch.batch_id)
        .collect();
    let shared = read.iter().filter(|event| event.service_id == service("a::b"));
    assert_eq!(shared.map(|event| event.batch_id).collect::<Vec<_>>(), open);
    for writer in 0..WRITERS {
        let own = service(&format!("own::{writer}"));
        let events: Vec<BatchEvent> =
            read.iter().filter(|event| event.service_id == own).cloned().collect();
        for batch in events.iter().map(|event| event.batch_id).collect::<BTreeSet<_>>() {
            let read: Vec<_> = events.iter().filter(|event| event.batch_id == batch).collect();
            let stored = store.history(&own, &batch).unwrap().unwrap();
            assert_eq!(read, stored.iter().collect::<Vec<_>>());
        }
    }
}

/// A writer that bypasses the store, in a transaction that has begun and has an id.
fn begin(db: &Database) -> PgConnection {
    let mut writer = PgConnection::establish(&db.postgres_url()).unwrap();
    writer.batch_execute("begin; select txid_current()").unwrap();
    writer
}

/// Writes an event of the first batch.
fn write(writer: &mut PgConnection, attempt: u32) {
    let sql = format!(
        "with g as (insert into event_groups (xid, at, batch_seqs)
             values (txid_current(), 7, '\\x02') returning seq)
         insert into batch_events select 1, g.seq, 7, 0, {attempt}, 3, 5, null from g"
    );
    writer.batch_execute(&sql).unwrap();
}

fn attempts(events: &[BatchEvent]) -> Vec<u32> {
    events.iter().map(|event| event.attempt).collect()
}

/// The earlier transaction allocates the smaller number and commits last.
#[test]
fn commit_that_becomes_visible_late_is_not_skipped() {
    let db = Database::postgres();
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let (_, start) = after(&store, &"e1.0.oldest".parse().unwrap());
    let (mut first, mut second, mut third) = (begin(&db), begin(&db), begin(&db));
    write(&mut first, 1);
    write(&mut second, 2);
    second.batch_execute("commit").unwrap();
    let (events, before_first) = after(&store, &start);
    assert_eq!(attempts(&events), [2]);
    write(&mut third, 3);
    first.batch_execute("commit").unwrap();
    third.batch_execute("commit").unwrap();
    let expected = [1, 3];
    assert_eq!(attempts(&after(&store, &before_first).0), expected);
    for limit in [1, 2] {
        let position = EventPosition::After(before_first.clone());
        let (events, next) = read_from(&store, position, &EventFilter::default(), limit);
        assert_eq!(attempts(&events), expected, "pages of {limit}");
        assert!(after(&store, &next).0.is_empty());
    }
    assert_eq!(attempts(&all(&store)), [0, 1, 2, 3]);
}

/// The transaction with the smaller id locks the service last. Ordering by these ids would exchange the two.
#[test]
fn changes_of_a_service_are_in_the_order_of_its_lock() {
    let db = Database::postgres();
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let start = store.events(&EventPosition::Latest, &EventFilter::default(), 1).unwrap().unwrap();
    let mut first = begin(&db);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    let (between, middle) = after(&store, &start.next);
    first.batch_execute("select 1 from services where service_id = 'a::b' for update").unwrap();
    write(&mut first, 9);
    let (open, _) = after(&store, &middle);
    first.batch_execute("commit").unwrap();
    let (rest, _) = after(&store, &middle);
    assert_eq!(attempts(&between), [1, 1], "the transaction that is open delays nothing");
    assert_eq!((attempts(&open), attempts(&rest)), (vec![], vec![9]));
    assert_eq!(attempts(&after(&store, &start.next).0), [1, 1, 9]);
}

/// A dump that is loaded elsewhere has transaction ids that the new server has not reached.
#[test]
fn copied_database_shows_all_its_events() {
    let db = Database::postgres();
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    db.execute("update event_groups set xid = xid + 1000000000").unwrap();
    assert_eq!(all(&store), []);
    db.restored().mark_moved(&by_program()).unwrap();
    store.add_all(&[batch("a::b", 2)]);
    assert_eq!(all(&store).len(), 2);
}

/// Adds batches, and repeats each that failed, because the commit may have succeeded.
fn add_again(store: &Store, numbers: Range<u64>) {
    for number in numbers {
        let failed = |_: &u32| store.add(&[&[batch("a::b", number)]]).is_err();
        let _ = (0..3).take_while(failed).count();
    }
}

/// The sessions of one of two instances are repeatedly ended in the middle of transactions.
#[test]
fn feed_is_complete_while_one_of_two_writers_is_killed() {
    const EACH: u64 = 60;
    const KILLS: i64 = 15;
    let db = Database::postgres();
    let store = db.open();
    let killed_url = format!("{}-killed", db.postgres_url());
    let killed = Store::open(&killed_url.parse().unwrap(), db.options()).unwrap();
    let done = AtomicBool::new(false);
    let read = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut read, mut position) = (Vec::new(), EventPosition::Oldest);
            loop {
                let was_done = done.load(Ordering::Acquire);
                let (events, next) = read_from(&store, position, &EventFilter::default(), 5);
                read.extend(events);
                if was_done {
                    return read;
                }
                position = EventPosition::After(next);
            }
        });
        scope.spawn(|| {
            let kill = "select count(pg_terminate_backend(pid)) as number from pg_stat_activity
                        where application_name = current_setting('application_name') || '-killed'
                            and state <> 'idle'";
            let mut kills = 0;
            while kills < KILLS && !done.load(Ordering::Acquire) {
                kills += db.number(kill);
            }
        });
        let steady = scope.spawn(|| add_again(&store, 0..EACH));
        scope.spawn(|| add_again(&killed, 1_000..1_000 + EACH)).join().unwrap();
        steady.join().unwrap();
        done.store(true, Ordering::Release);
        reader.join().unwrap()
    });
    let stored = store.open_batches(&service("a::b"), 1_000).unwrap();
    let stored: Vec<ItemId> = stored.into_iter().map(|batch| batch.batch_id).collect();
    assert!(stored.len() as u64 >= EACH);
    let told: Vec<ItemId> = read.iter().map(|event| event.batch_id).collect();
    assert_eq!(told, stored, "an event for each batch, in the order of the service");
}

const MOVED: [&str; 4] = ["moved::a", "moved::b", "moved::c", "moved::d"];
const BATCHES_OF_EACH: u64 = 8;

/// Takes services, and processes their batches until all have ended. Sometimes the instance gives up its services, or
/// expires with a batch that is on its way, which another instance then finds committed.
fn work_until_all_ended(db: &Database, instance: &ClaimStore, mut numbers: fastrand::Rng) {
    let ended = "select count(*) as number from batches where ended_at is not null";
    let all = i64::try_from(MOVED.len() as u64 * BATCHES_OF_EACH).unwrap();
    while db.number(ended) < all {
        if !instance.renew().unwrap() {
            instance.register_again().unwrap();
        }
        let mut in_doubt = instance.take(2).unwrap().in_doubt;
        // If no other instance was faster, it finds the orphans itself.
        let orphans = instance.recover(&instance.with_submitter().unwrap()).unwrap();
        in_doubt.extend(orphans.into_iter().map(|orphan| (orphan.service_id, orphan.batch_id)));
        for (service_id, batch_id) in in_doubt {
            let found = instance.store().find(&batch_id).unwrap().remove(0);
            let attempt = found.progress.attempts;
            let event = Event::Evidence { attempt, evidence: Evidence::Committed };
            instance.store().record(&[Change::new(service_id, batch_id, event)]).unwrap();
        }
        let ready = instance.ready_services(None, 9).unwrap();
        for taken in instance.take_next(&ready).unwrap() {
            if numbers.u8(..4) == 0 {
                db.pass_full_expiry(instance);
                break;
            }
            instance.store().outcome(&taken, Outcome::Accepted);
            instance.store().status(&taken, LedgerStatus::Committed);
        }
        if numbers.bool() {
            instance.release_services(&MOVED.map(service)).unwrap();
        }
    }
}

/// Reads through several instances in turn, until `done`.
fn read_in_turn(stores: &[Store], done: &AtomicBool) -> Vec<BatchEvent> {
    let (mut read, mut position) = (Vec::new(), EventPosition::Oldest);
    for store in stores.iter().cycle() {
        let was_done = done.load(Ordering::Acquire);
        let (events, next) = read_from(store, position, &EventFilter::default(), 3);
        read.extend(events);
        if was_done {
            return read;
        }
        position = EventPosition::After(next);
    }
    read
}

/// The guarantee is that no event is left out or repeated, and that the events of a service are in the order of its
/// changes. There is no guarantee about the order of events of different services.
#[test]
fn feed_keeps_its_order_while_services_are_taken_over() {
    let db = Database::postgres();
    let store = db.open();
    for number in 0..BATCHES_OF_EACH {
        for (name, first) in MOVED.iter().zip([0, 100, 200, 300]) {
            store.add_all(&[batch(name, first + number)]);
        }
    }
    let seed = fastrand::u64(..);
    println!("seed = {seed}");
    let instances: Vec<ClaimStore> = (0..3).map(|_| db.instance()).collect();
    let stores: Vec<Store> = instances.iter().map(|instance| instance.store().clone()).collect();
    let done = AtomicBool::new(false);
    let read = thread::scope(|scope| {
        let reader = scope.spawn(|| read_in_turn(&stores, &done));
        let workers: Vec<_> = (seed..)
            .zip(&instances)
            .map(|(seed, instance)| {
                let (db, numbers) = (&db, fastrand::Rng::with_seed(seed));
                scope.spawn(move || work_until_all_ended(db, instance, numbers))
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        done.store(true, Ordering::Release);
        reader.join().unwrap()
    });
    let ids: BTreeSet<_> = read.iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), read.len(), "an event was read twice");
    assert!(read.iter().any(|event| event.kind == EventKind::OwnerLost), "nothing was taken over");
    for name in MOVED {
        let events: Vec<&BatchEvent> =
            read.iter().filter(|event| event.service_id == service(name)).collect();
        assert!(events.is_sorted_by_key(|event| event.id), "{name}: {events:#?}");
        let under_way: Vec<ItemId> = events
            .iter()
            .filter(|event| event.kind != EventKind::Accepted)
            .map(|event| event.batch_id)
            .collect();
        assert!(
            under_way.is_sorted(),
            "a batch began before the one before had ended: {events:#?}"
        );
        let batches: BTreeSet<ItemId> = under_way.into_iter().collect();
        assert_eq!(batches.len() as u64, BATCHES_OF_EACH);
        for batch_id in batches {
            let told = events.iter().copied().filter(|event| event.batch_id == batch_id);
            let stored = store.history(&service(name), &batch_id).unwrap().unwrap();
            assert_eq!(told.cloned().collect::<Vec<_>>(), stored);
        }
    }
}
