use std::time::Duration;

use grid_batch_core::Timestamp;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::LedgerQuestionStore;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::polling::{BatchId, PollPace};
use grid_batch_store::PendingBatch;
use proptest::{collection::vec, option, prelude::*};

use crate::fixture::{Database, StoreExt, TestStore, batch, cases, id, on_both, service};

on_both! {
    due_batches_are_ordered_by_last_check,
    only_batches_the_ledger_may_have_are_pending,
    recently_checked_batch_is_not_due,
    due_batches_match_the_poll_pace,
    pending_of_named_services_ignores_the_pace,
    checked_batches_without_status_do_not_block_others,
    next_batches_are_the_open_ones_behind_the_head,
    services_of_other_instances_have_no_next_batch,
}

const EVER: Timestamp = Timestamp::from_micros(i64::MAX);
const SECOND: Duration = Duration::from_secs(1);
const PACE: PollPace = PollPace { interval: SECOND, longest: SECOND };

fn names(pending: &[PendingBatch]) -> Vec<&str> {
    pending.iter().map(PendingBatch::get_service_id).collect()
}

/// Four services, submitted in the order 4, 3, 2, 1. Then 4 is checked, and after it 1.
fn four_services(db: &Database) -> TestStore {
    let store = db.open();
    let names = ["s::1", "s::2", "s::3", "s::4"];
    for (number, name) in (0..).zip(names) {
        store.add_all(&[batch(name, number)]);
    }
    let mut taken = Vec::new();
    for name in names.iter().rev() {
        db.later(1);
        taken.push(store.take_one(name));
        store.outcome(taken.last().unwrap(), Outcome::Accepted);
    }
    db.later(1);
    store.status(&taken[0], LedgerStatus::NotReported);
    db.later(1);
    store.status(&taken[3], LedgerStatus::Pending);
    store
}

fn due_batches_are_ordered_by_last_check(db: &Database) {
    let store = four_services(db);
    let order = ["s::3", "s::2", "s::4", "s::1"];
    for limit in [0, 2, 9] {
        let due = store.due(EVER, PACE, limit).unwrap();
        assert_eq!(names(&due), order[..limit.min(4)]);
        let all = ["s::4", "s::1", "s::3", "s::2"].map(service);
        let pending = store.pending_of(&all, limit).unwrap();
        assert_eq!(pending, due);
    }
}

fn only_batches_the_ledger_may_have_are_pending(db: &Database) {
    let store = db.open();
    let all = ["new", "with-submitter", "delayed", "in-doubt", "accepted", "valid", "ended"];
    for (number, name) in (0..).zip(all) {
        store.add_all(&[batch(name, number)]);
    }
    store.take(&["with-submitter"]);
    store.outcome(&store.take_one("delayed"), Outcome::Busy);
    store.outcome(&store.take_one("in-doubt"), Outcome::Ambiguous);
    store.outcome(&store.take_one("accepted"), Outcome::Accepted);
    let valid = store.take_one("valid");
    store.outcome(&valid, Outcome::Accepted);
    store.status(&valid, LedgerStatus::Valid);
    store.commit_next("ended");

    let due = store.due(EVER, PACE, 99).unwrap();
    assert_eq!(names(&due), ["accepted", "in-doubt", "valid"]);
    assert_eq!(store.pending_of(&all.map(service), 99).unwrap(), due);
}

fn recently_checked_batch_is_not_due(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    let checked_at = db.later(1);
    store.status(&taken, LedgerStatus::Pending);
    let almost = Timestamp::from_micros(checked_at.plus(SECOND).as_micros() - 1);
    assert!(store.due(almost, PACE, 9).unwrap().is_empty());
    let [due] = store.due(checked_at.plus(SECOND), PACE, 9).unwrap().try_into().unwrap();
    assert_eq!((due.batch_id, due.attempt, due.epoch), (id(1), 1, 1));
    assert_eq!(due.get_id(), id(1).to_string());
}

/// A batch at the ledger: when it was submitted and last checked, and whether it is held.
type BatchTimes = (i64, Option<i64>, bool);

/// The rule of core. A held batch is polled at the longest interval of the pace. A batch that was checked in the future
/// is due, because the clock was set back since.
fn is_due(times: BatchTimes, pace: PollPace, now: Timestamp) -> bool {
    let (submitted_at, checked_at, held) = times;
    let time = Timestamp::from_micros;
    let seldom = PollPace { interval: pace.longest.max(pace.interval), ..pace };
    let pace = if held { seldom } else { pace };
    let checked_at = checked_at.map(time);
    let last = checked_at.unwrap_or(time(submitted_at));
    last > now || pace.next_check(time(submitted_at), checked_at) <= now
}

fn due_batches_match_the_poll_pace(db: &Database) {
    const SERVICES: usize = 12;
    let store = db.open();
    for number in 0..SERVICES as u64 {
        let name = format!("s::{number:02}");
        store.add_all(&[batch(&name, number)]);
        store.outcome(&store.take_one(&name), Outcome::Accepted);
    }
    let times = (0..400i64, option::of(0..1_200i64), any::<bool>());
    let micros = prop_oneof![
        (0..100u64).prop_map(Duration::from_micros),
        (0..300u64).prop_map(|nanos| Duration::from_nanos(nanos * 777)),
        Just(Duration::MAX),
    ];
    // The largest timestamp is excluded, because only there does core consider an endless interval to be over.
    let now = prop_oneof![9 => 0..1_600i64, 1 => Just(i64::MIN), 1 => Just(i64::MAX - 1)];
    cases(100)
        .run(&(vec(times, SERVICES), micros.clone(), micros, now), |(all, a, b, now)| {
            let (now, pace) = (Timestamp::from_micros(now), PollPace { interval: a, longest: b });
            write_times(db, &all);
            let mut expected: Vec<_> = (0..SERVICES)
                .filter(|number| is_due(all[*number], pace, now))
                .map(|number| {
                    (all[number].1, all[number].0, format!("s::{number:02}"), all[number].2)
                })
                .collect();
            expected.sort();
            let expected: Vec<_> =
                expected.iter().map(|(_, _, name, held)| (name.as_str(), *held)).collect();
            let due = store.due(now, pace, 99).unwrap();
            let due: Vec<_> =
                due.iter().map(|batch| (batch.get_service_id(), batch.is_held())).collect();
            prop_assert_eq!(due, expected);
            Ok(())
        })
        .unwrap();
}

/// Writes the state of the batches directly into the database.
fn write_times(db: &Database, all: &[BatchTimes]) {
    let or_null = |value: Option<String>| value.unwrap_or_else(|| "null".to_owned());
    let update = |(number, (submitted_at, checked_at, held)): (usize, &BatchTimes)| {
        let checked_at = or_null(checked_at.map(|at| at.to_string()));
        let (held_at, reason) = if *held { ("0", "'why'") } else { ("null", "null") };
        format!(
            "update lanes set submitted_at = {submitted_at}, checked_at = {checked_at},
                 held_at = {held_at}, held_reason = {reason} where service_id = 's::{number:02}';"
        )
    };
    let updates: String = all.iter().enumerate().map(update).collect();
    db.execute(&format!("begin; {updates} commit")).unwrap();
}

fn pending_of_named_services_ignores_the_pace(db: &Database) {
    let store = four_services(db);
    let hourly = PollPace { interval: SECOND * 3_600, longest: SECOND * 3_600 };
    assert!(store.due(db.now(), hourly, 9).unwrap().is_empty());
    let some = ["s::1", "never::seen", "s::3", "s::1"].map(service);
    assert_eq!(names(&store.pending_of(&some, 9).unwrap()), ["s::3", "s::1"]);
    assert!(store.pending_of(&[], 9).unwrap().is_empty());
}

fn checked_batches_without_status_do_not_block_others(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("silent::1", 1), batch("silent::2", 2), batch("talking::1", 3)]);
    let taken: Vec<_> = ["silent::1", "silent::2", "talking::1"]
        .map(|name| store.take_one(name))
        .into_iter()
        .collect();
    for taken in &taken {
        store.outcome(taken, Outcome::Accepted);
    }
    let asked = store.due(EVER, PACE, 2).unwrap();
    db.later(1);
    store.mark_checked(&asked).unwrap();
    assert_eq!(names(&store.due(EVER, PACE, 1).unwrap()), ["talking::1"]);
    // A batch that has ended is not marked as checked.
    store.status(&taken[0], LedgerStatus::Committed);
    let before = store.one("silent::1", 1);
    db.later(1);
    store.mark_checked(&asked).unwrap();
    assert_eq!(store.one("silent::1", 1), before);
}

fn next_batches_are_the_open_ones_behind_the_head(db: &Database) {
    let store = db.open();
    for number in 1..=3 {
        store.add_all(&[batch("a::b", number)]);
    }
    store.add_all(&[batch("a::c", 4)]);
    let all = ["a::b", "a::c", "a::d"].map(service);
    let next = || store.monitor().next_batches(&all).unwrap();
    let behind_the_head = [2, 3].map(|number| (service("a::b"), id(number)));
    assert_eq!(next(), behind_the_head);
    store.take(&["a::b", "a::c"]);
    assert_eq!(next(), behind_the_head);
    store.recover().unwrap();
    assert_eq!(next(), behind_the_head);
    for number in 5..=20 {
        store.add_all(&[batch("a::c", number)]);
        store.add_all(&[batch("a::b", 100 + number)]);
    }
    let of_c = next().into_iter().filter(|(id, _)| *id == service("a::c"));
    let first: Vec<_> = (5..=12).map(|number| (service("a::c"), id(number))).collect();
    assert_eq!(of_c.collect::<Vec<_>>(), first, "the first ones of many");
    assert_eq!(next().len(), 2 * first.len());

    let store = db.open();
    store.add_all(&[batch("e::f", 5), batch("e::f", 6), batch("e::f", 7)]);
    store.commit_next("e::f");
    let next = store.monitor().next_batches(&[service("e::f")]).unwrap();
    assert_eq!(next, [(service("e::f"), id(7))]);
}

fn services_of_other_instances_have_no_next_batch(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let monitor = store.monitor();
    assert_eq!(monitor.next_batches(&[service("a::b")]).unwrap().len(), 1);
    store.worker().release().unwrap();
    assert_eq!(monitor.next_batches(&[service("a::b")]).unwrap(), []);
}
