use std::collections::BTreeSet;

use grid_batch_core::Timestamp;
use grid_batch_core::batches::{BatchState, Change, Event, NewBatch};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::{Round, RoundStore, ServiceShare};

use crate::fixture::{Database, StoreExt, batch, happened, id, on_both, service};

on_both! {
    round_takes_the_oldest_batch_of_each_service,
    service_with_batch_under_way_is_skipped,
    unknown_and_empty_services_are_skipped,
    service_named_twice_yields_one_batch,
    batch_that_does_not_fit_stays,
    lengths_are_asked_only_of_batches_that_can_be_taken,
    lengths_are_not_asked_of_services_of_others,
    taken_batch_is_marked_before_it_is_returned,
    delayed_batch_is_taken_after_its_delay,
    delay_that_began_in_the_future_is_over,
    absent_batch_is_taken_at_once,
    ready_services_are_those_a_round_would_take,
    paging_ready_services_visits_each,
    busy_service_does_not_block_others,
    given_back_batch_can_be_taken_again_at_once,
    giving_back_is_recorded_as_a_failed_attempt,
    give_back_after_a_change_does_nothing,
}

fn round_takes_the_oldest_batch_of_each_service(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::1", 1), batch("a::2", 2), batch("a::1", 3), batch("a::3", 4)]);
    let taken = store.take(&["a::1", "a::2"]);
    let ids: Vec<_> = taken.iter().map(|taken| taken.batch_id).collect();
    assert_eq!(ids, [id(1), id(2)]);
    assert_eq!((taken[0].attempt, taken[0].epoch), (1, 1));
    assert_eq!(taken[0].serialized_batch, batch("a::1", 1).serialized_batch);
    assert_eq!(store.one("a::3", 4).progress.state, BatchState::New);
}

fn service_with_batch_under_way_is_skipped(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let first = store.take_one("a::b");
    assert!(store.take(&["a::b"]).is_empty());
    store.outcome(&first, Outcome::Accepted);
    assert!(store.take(&["a::b"]).is_empty());
}

fn unknown_and_empty_services_are_skipped(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    assert!(store.take(&["never::seen", "a::", "A::B", "a::bb"]).is_empty());
    store.commit_next("a::b");
    assert!(store.take(&["a::b"]).is_empty());
}

fn service_named_twice_yields_one_batch(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    assert_eq!(store.take(&["a::b", "a::b"]).len(), 1);
}

/// A batch with this many bytes.
fn batch_of_length(service: &str, number: u64, length: usize) -> NewBatch {
    NewBatch { serialized_batch: vec![7; length], ..batch(service, number) }
}

fn one_of(name: &str) -> ServiceShare {
    ServiceShare::of_one(service(name))
}

fn batch_that_does_not_fit_stays(db: &Database) {
    let store = db.open();
    store.add_all(&[
        batch_of_length("a::1", 1, 10),
        batch_of_length("a::2", 2, 300_000),
        batch_of_length("a::3", 3, 20),
    ]);
    let shares = ["a::3", "never::seen", "a::2", "a::1"].map(one_of);
    let mut lengths = Vec::new();
    let round = store.worker_of_all().take_round(&shares, &mut |length| {
        lengths.push(length);
        length < 300_000
    });
    let round = round.unwrap();
    assert_eq!(lengths, [20, 300_000, 10], "in the order of the services");
    let mut taken: Vec<_> = round.batches.iter().map(|taken| taken.batch_id).collect();
    taken.sort_unstable();
    assert_eq!((taken, round.left), (vec![id(1), id(3)], vec![service("a::2")]));
    let left = store.one("a::2", 2);
    assert_eq!((left.progress.state, left.progress.attempts), (BatchState::New, 0));
}

fn lengths_are_asked_only_of_batches_that_can_be_taken(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    store.take_one("a::1");
    store.outcome(&store.take_one("a::2"), Outcome::Accepted);
    let shares = ["a::1", "a::2"].map(one_of);
    let worker = store.worker_of_all();
    let round = worker.take_round(&shares, &mut |_| panic!("nothing is ready"));
    assert_eq!(round.unwrap(), Round::default());
}

fn lengths_are_not_asked_of_services_of_others(db: &Database) {
    let store = db.open();
    store.add_all(&[batch_of_length("a::1", 1, 10), batch_of_length("a::2", 2, 20)]);
    store.worker().take_services(&[service("a::2")]).unwrap();
    let shares = ["a::1", "a::2"].map(one_of);
    let mut lengths = Vec::new();
    let round = store.worker().take_round(&shares, &mut |length| {
        lengths.push(length);
        false
    });
    assert_eq!((lengths, round.unwrap().left), (vec![20], vec![service("a::2")]));
}

fn taken_batch_is_marked_before_it_is_returned(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    db.later(3);
    store.take_one("a::b");
    let seen_by_another = db.open().one("a::b", 1);
    assert_eq!(seen_by_another.progress.state, BatchState::Submitting);
    assert_eq!(seen_by_another.progress.attempts, 1);
    assert_eq!(seen_by_another.submitted_at, Some(db.now()));
}

fn delayed_batch_is_taken_after_its_delay(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    let busy = Event::Outcome { attempt: 1, outcome: Outcome::Busy };
    let retry_at = db.now().plus(std::time::Duration::from_secs(15));
    store.record_one(Change { retry_at: Some(retry_at), ..happened(&taken, busy) });

    db.later(14);
    assert!(store.take(&["a::b"]).is_empty());
    assert!(store.ready_services(None, 9).unwrap().is_empty());
    db.later(1);
    assert_eq!(store.ready_services(None, 9).unwrap(), [service("a::b")]);
    let again = store.take_one("a::b");
    assert_eq!((again.batch_id, again.attempt), (id(1), 2));
}

fn delay_that_began_in_the_future_is_over(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let start = db.later(3_600);
    let taken = store.take_one("a::b");
    let busy = Event::Outcome { attempt: 1, outcome: Outcome::Busy };
    let retry_at = start.plus(std::time::Duration::from_secs(15));
    store.record_one(Change { retry_at: Some(retry_at), ..happened(&taken, busy) });

    // The clocks of two instances may differ by this much.
    db.clock.set(Timestamp::from_micros(start.as_micros() - 1_000_000));
    assert!(store.take(&["a::b"]).is_empty());
    assert!(store.ready_services(None, 9).unwrap().is_empty());
    db.clock.set(Timestamp::from_micros(start.as_micros() - 3_000_000));
    assert_eq!(store.ready_services(None, 9).unwrap(), [service("a::b")]);
    assert_eq!(store.take_one("a::b").attempt, 2);
}

fn absent_batch_is_taken_at_once(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Ambiguous);
    assert!(store.take(&["a::b"]).is_empty());
    let absent = Event::Evidence { attempt: 1, evidence: Evidence::Absent };
    store.record_one(happened(&taken, absent));
    let again = store.take_one("a::b");
    assert_eq!((again.batch_id, again.attempt), (id(1), 2));
}

fn ready_services_are_those_a_round_would_take(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::1", 1), batch("a::2", 2), batch("a::3", 3), batch("a::4", 4)]);
    store.commit_next("a::1");
    store.take_one("a::2");
    let ready = store.ready_services(None, 9).unwrap();
    assert_eq!(ready, [service("a::3"), service("a::4")]);
    assert_eq!(store.take_next(&ready).unwrap().len(), 2);
    assert!(store.ready_services(None, 9).unwrap().is_empty());
}

fn paging_ready_services_visits_each(db: &Database) {
    let store = db.open();
    let names: Vec<String> = (0..10).map(|number| format!("s::{number}")).collect();
    for (number, name) in (0..).zip(&names) {
        store.add_all(&[batch(name, number)]);
    }
    let mut seen = BTreeSet::new();
    let mut after = None;
    for _ in 0..4 {
        let page = store.ready_services(after.as_ref(), 3).unwrap();
        after = page.last().cloned();
        seen.extend(page.into_iter().map(|service| service.to_string()));
    }
    assert_eq!(seen, names.into_iter().collect());
}

fn busy_service_does_not_block_others(db: &Database) {
    let store = db.open();
    let many: Vec<_> = (0..300).map(|number| batch("busy::one", number)).collect();
    store.add_all(&many);
    let few: Vec<_> = (0..9).map(|number| batch(&format!("s::{number}"), 1_000 + number)).collect();
    store.add_all(&few);
    let ready = store.ready_services(None, 10).unwrap();
    assert_eq!(store.take_next(&ready).unwrap().len(), 10);
}

fn given_back_batch_can_be_taken_again_at_once(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::1", 1), batch("a::1", 2), batch("a::2", 3)]);
    let taken = store.take(&["a::1", "a::2"]);
    store.give_back(&taken).unwrap();
    assert_eq!(store.ready_services(None, 9).unwrap(), [service("a::1"), service("a::2")]);
    let again = store.take(&["a::1", "a::2"]);
    let ids: Vec<_> = again.iter().map(|taken| (taken.batch_id, taken.attempt)).collect();
    assert_eq!(ids, [(id(1), 2), (id(3), 2)]);
}

fn giving_back_is_recorded_as_a_failed_attempt(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    store.give_back(&[store.take_one("a::b")]).unwrap();
    let details = store.details(&service("a::b"), &id(1)).unwrap().unwrap();
    assert_eq!(details.batch.progress.attempts, 1);
    let [attempt] = details.failed_attempts.try_into().unwrap();
    assert_eq!((attempt.attempt, attempt.outcome.as_str()), (1, "not sent"));
    assert_eq!(attempt.error.as_deref(), Some("given back before it was sent"));
}

fn give_back_after_a_change_does_nothing(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::1", 1), batch("a::2", 2), batch("a::3", 3), batch("a::4", 4)]);
    let taken = store.take(&["a::1", "a::2", "a::3", "a::4"]);
    store.outcome(&taken[0], Outcome::Accepted);
    store.outcome(&taken[1], Outcome::Rejected);
    store.outcome(&taken[2], Outcome::NotSent);
    store.take_one("a::3");
    db.execute("update lanes set epoch = 2 where service_id = 'a::4'").unwrap();
    store.give_back(&taken).unwrap();
    let state = |number| store.one(&format!("a::{number}"), number).progress.state;
    let expected =
        [BatchState::Pending, BatchState::Invalid, BatchState::Submitting, BatchState::Submitting];
    assert_eq!([1, 2, 3, 4].map(state), expected);
}
