use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::batches::{
    BatchState, ChangeOutcome, Deadline, Decision, LedgerStatus, NewBatch,
};
use grid_batch_core::events::Recorded;
use grid_batch_core::evidence::{Evidence, LedgerQuestionStore};
use grid_batch_core::ledger::{GroupObserver, Outcome, SubmissionAnswer, SubmissionOutcome};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::TakenBatch;
use grid_batch_core::{ScopeId, ServiceScopeId};
use grid_batch_store::{DelayOptions, StoreObserver};

use crate::fixture::{Database, StoreExt, TestStore, batch, change_of, id, on_both, service};

on_both! {
    each_outcome_changes_the_state,
    delays_in_a_row_double_and_end_with_an_acceptance,
    delay_is_the_longer_of_ours_and_the_ledgers,
    ledger_cannot_ask_for_longer_than_the_limit,
    refused_batch_is_held_and_its_release_tries_again,
    refused_batch_with_a_deadline_is_held_later,
    only_refusals_in_a_row_hold_a_batch,
    end_of_delays_makes_batches_ready,
    attempts_not_accepted_are_counted_apart,
    late_outcome_is_reported_and_changes_nothing,
    malformed_outcomes_do_not_block_others,
}

const DELAY: Duration = Duration::from_secs(15);
const LIMIT: Duration = Duration::from_mins(5);

fn options() -> DelayOptions {
    DelayOptions {
        first: DELAY,
        longest: 4 * DELAY,
        retry_after_limit: LIMIT,
        refusals_before_hold: 3,
        hold_after: 2 * DELAY,
        seed: Some(7),
    }
}

fn observer(store: &TestStore) -> StoreObserver<ServiceScopeId> {
    StoreObserver::new(store.clone().into_store(), options(), |_: Recorded<'_>| ())
}

/// How long the batch waits now.
fn waits(db: &Database, store: &TestStore, name: &str, number: u64) -> Duration {
    store.one(name, number).next_try_at.unwrap().since(db.now())
}

/// Whether this is a delay of `whole`, with its random part.
fn is_about(delay: Duration, whole: Duration) -> bool {
    whole / 2 <= delay && delay <= whole
}

fn outcome(taken: &TakenBatch, outcome: Outcome) -> SubmissionOutcome<ServiceScopeId> {
    SubmissionOutcome {
        batch_header: taken.batch_id.to_string(),
        scope_id: ServiceScopeId::from_service_id(&taken.service_id).unwrap(),
        attempt_id: Some(taken.attempt_id()),
        deadline: taken.deadline,
        attempts: 1,
        answer: SubmissionAnswer {
            outcome,
            status: None,
            message: Some("the answer".to_owned()),
            retry_after: None,
        },
    }
}

fn each_outcome_changes_the_state(db: &Database) {
    let store = db.open();
    let cases = [
        (Outcome::Accepted, BatchState::Pending),
        (Outcome::Committed, BatchState::Committed),
        (Outcome::Busy, BatchState::Delayed),
        (Outcome::NotSent, BatchState::Delayed),
        (Outcome::Parked, BatchState::Delayed),
        (Outcome::Refused, BatchState::Delayed),
        (Outcome::RefusedBatch, BatchState::Delayed),
        (Outcome::NotProvedNew, BatchState::Delayed),
        (Outcome::Rejected, BatchState::Invalid),
        (Outcome::Ambiguous, BatchState::InDoubt),
    ];
    let names: Vec<String> = (0..).zip(cases).map(|(n, _)| format!("s::{n}")).collect();
    for (number, name) in (0..).zip(&names) {
        store.add_all(&[batch(name, number), batch(name, 100 + number)]);
    }
    let taken = store.take(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let reported = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&reported);
    let observer =
        StoreObserver::new(store.clone().into_store(), options(), move |entry: Recorded<'_>| {
            let (change, outcome) = change_of(entry);
            sink.lock().unwrap().push((change.service_id, outcome));
        });
    let group: Vec<_> = taken.iter().zip(cases).map(|(t, (o, _))| outcome(t, o)).collect();
    observer.notify_group(&group).unwrap();

    let reported = reported.lock().unwrap();
    for (number, (outcome, state)) in (0..).zip(cases) {
        let name = &names[number as usize];
        let stored = store.one(name, number);
        assert_eq!(stored.progress.state, state, "{outcome}");
        let is_error = !matches!(outcome, Outcome::Accepted | Outcome::Committed);
        let error = is_error.then_some("the answer");
        assert_eq!(stored.last_error.as_deref(), error, "{outcome}");
        let waits = stored.next_try_at.map(|at| at.since(db.now()));
        let is_held = outcome == Outcome::NotProvedNew;
        assert_eq!(stored.held.is_some(), is_held, "{outcome}");
        let expected = state == BatchState::Delayed && !is_held;
        assert_eq!(waits.is_some_and(|delay| is_about(delay, DELAY)), expected, "{outcome}");
        let next_waits = state.is_terminal();
        let expected = (stored.service_id, ChangeOutcome::Applied { state, next_waits });
        assert_eq!(reported[number as usize], expected);
    }
}

fn delay_is_the_longer_of_ours_and_the_ledgers(db: &Database) {
    let store = db.open();
    let observer = observer(&store);
    for (number, asked, least) in [(1, 5, 7), (2, 60, 60)] {
        let name = format!("s::{number}");
        store.add_all(&[batch(&name, number)]);
        let mut busy = outcome(&store.take_one(&name), Outcome::Busy);
        busy.answer.retry_after = Some(Duration::from_secs(asked));
        observer.notify_group(&[busy]).unwrap();
        let delay = waits(db, &store, &name, number).as_secs();
        assert!((least..least + 9).contains(&delay), "{delay}");
        let error = store.one(&name, number).last_error.unwrap();
        assert_eq!(error, format!("the answer; the ledger asked to wait {asked} s"));
    }
}

fn ledger_cannot_ask_for_longer_than_the_limit(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let mut busy = outcome(&store.take_one("a::b"), Outcome::Busy);
    busy.answer.retry_after = Some(Duration::from_secs(31_536_000));
    observer(&store).notify_group(&[busy]).unwrap();
    let delay = waits(db, &store, "a::b", 1);
    assert!(LIMIT <= delay && delay <= LIMIT + LIMIT / 10, "{delay:?}");
    let error = store.one("a::b", 1).last_error.unwrap();
    assert!(error.ends_with("31536000 s, which is cut to 300 s"), "{error}");
}

fn delays_in_a_row_double_and_end_with_an_acceptance(db: &Database) {
    let store = db.open();
    let observer = observer(&store);
    store.add_all(&[batch("a::b", 1)]);
    let tried = |result: Outcome| {
        db.later(75);
        observer.notify_group(&[outcome(&store.take_one("a::b"), result)]).unwrap();
    };
    for whole in [DELAY, 2 * DELAY, 4 * DELAY, 4 * DELAY] {
        tried(Outcome::Busy);
        let delay = waits(db, &store, "a::b", 1);
        assert!(is_about(delay, whole), "{delay:?} of {whole:?}");
    }
    // When a node answers again, batches that were not sent are tried soon.
    tried(Outcome::NotSent);
    assert!(is_about(waits(db, &store, "a::b", 1), DELAY));
    db.later(75);
    let taken = store.take_one("a::b");
    observer.notify_group(&[outcome(&taken, Outcome::Accepted)]).unwrap();
    store.evidence(&taken, Evidence::Lost);
    tried(Outcome::Busy);
    assert!(is_about(waits(db, &store, "a::b", 1), DELAY));
    // A closed gate is not a failure.
    tried(Outcome::Busy);
    tried(Outcome::Parked);
    tried(Outcome::Busy);
    assert!(is_about(waits(db, &store, "a::b", 1), DELAY));
}

fn refused_batch_is_held_and_its_release_tries_again(db: &Database) {
    let store = db.open();
    let observer = observer(&store);
    store.add_all(&[batch("a::b", 1)]);
    let refused = || {
        db.later(75);
        observer.notify_group(&[outcome(&store.take_one("a::b"), Outcome::Refused)]).unwrap();
    };
    for release in [true, false] {
        for held in [false, false, true] {
            refused();
            assert_eq!(store.one("a::b", 1).held.is_some(), held);
        }
        let stored = store.one("a::b", 1);
        assert_eq!(stored.progress.state, BatchState::Delayed);
        let hold = stored.held.unwrap();
        assert!(hold.until_decision);
        assert!(
            hold.reason.starts_with("refused by the ledger 3 times: the answer"),
            "{}",
            hold.reason
        );
        db.later(75);
        assert!(store.take(&["a::b"]).is_empty());
        if release {
            store.release_batch(&service("a::b"), &id(1), None).unwrap();
        } else {
            assert_eq!(store.end_delays(None).unwrap().batches, [(service("a::b"), id(1))])
        }
        assert_eq!(store.one("a::b", 1).next_try_at, None);
    }
    refused();
    assert!(store.one("a::b", 1).held.is_none());
}

fn refused_batch_with_a_deadline_is_held_later(db: &Database) {
    let store = db.open();
    let options = DelayOptions { refusals_before_hold: 8, ..options() };
    let observer = StoreObserver::new(store.clone().into_store(), options, |_: Recorded<'_>| ());
    let cases = [
        ("a::b", None, 2),
        ("a::c", Some(Deadline::Height(7)), 8),
        ("a::d", Some(Deadline::Height(u64::MAX)), 8),
    ];
    for (service, deadline, refusals) in cases {
        store.add_all(&[NewBatch { deadline, ..batch(service, 1) }]);
        for refusal in 1..=refusals {
            db.later(75);
            let taken = store.take_one(service);
            observer.notify_group(&[outcome(&taken, Outcome::RefusedBatch)]).unwrap();
            let is_held = store.one(service, 1).held.is_some();
            assert_eq!(is_held, refusal == refusals, "{service}, refusal {refusal}");
        }
    }
}

fn only_refusals_in_a_row_hold_a_batch(db: &Database) {
    let store = db.open();
    let observer = observer(&store);
    store.add_all(&[batch("a::b", 1)]);
    let tried = |result: Outcome| {
        db.later(75);
        observer.notify_group(&[outcome(&store.take_one("a::b"), result)]).unwrap();
        store.one("a::b", 1).held.is_some()
    };
    for _ in 0..20 {
        assert!(!tried(Outcome::NotSent) && !tried(Outcome::Busy));
    }
    // A missing answer does not affect a series of refusals; another answer ends it.
    assert!(!tried(Outcome::Refused) && !tried(Outcome::Refused) && !tried(Outcome::Busy));
    assert!(!tried(Outcome::Refused) && !tried(Outcome::NotSent) && !tried(Outcome::Refused));
    assert!(tried(Outcome::Refused));
    let attempts = store.one("a::b", 1).progress.attempts;
    store.decide(&service("a::b"), &id(1), attempts, Decision::Invalid).unwrap();
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Invalid);
}

fn end_of_delays_makes_batches_ready(db: &Database) {
    let store = db.open();
    let observer = observer(&store);
    let names = ["s::1", "s::2", "s::3", "s::4"];
    for (number, name) in (1..).zip(names) {
        store.add_all(&[batch(name, number)]);
    }
    let taken = store.take(&names[..3]);
    let busy: Vec<_> = taken.iter().map(|taken| outcome(taken, Outcome::Busy)).collect();
    observer.notify_group(&busy).unwrap();
    store.hold_batch(&service("s::3"), &id(3), "look first").unwrap();
    assert_eq!(
        store.end_delays(Some(&service("s::1"))).unwrap().batches,
        [(service("s::1"), id(1))]
    );
    assert_eq!(store.end_delays(Some(&service("s::1"))).unwrap().batches, []);
    assert_eq!(store.end_delays(None).unwrap().batches, [(service("s::2"), id(2))]);
    assert_eq!(store.end_delays(Some(&service("s::4"))).unwrap().batches, []);
    assert_eq!(store.one("s::3", 3).held.unwrap().reason, "held by an operator: look first");
    assert_eq!(store.take(&names).len(), 3, "all but the held one");
    let details = store.details(&service("s::1"), &id(1)).unwrap().unwrap();
    assert_eq!(details.failed_attempts[0].outcome, "busy, then delay ended by an operator");
}

fn attempts_not_accepted_are_counted_apart(db: &Database) {
    let store = db.open();
    let observer = observer(&store);
    store.add_all(&[batch("a::b", 1)]);
    let results = [Outcome::Busy, Outcome::NotSent, Outcome::Refused, Outcome::Ambiguous];
    for result in results {
        db.later(75);
        observer.notify_group(&[outcome(&store.take_one("a::b"), result)]).unwrap();
    }
    let ids = [id(1).to_string()];
    let unresolved = store.monitor().get_unresolved_batches("a::b", &ids).unwrap().remove(0);
    assert_eq!((unresolved.attempt_id.attempt, unresolved.not_accepted), (4, 3));
}

fn late_outcome_is_reported_and_changes_nothing(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let first = store.take_one("a::b");
    store.outcome(&first, Outcome::NotSent);
    let second = store.take_one("a::b");
    let reported = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&reported);
    let subscriber = move |entry: Recorded<'_>| sink.lock().unwrap().push(change_of(entry).1);
    let observer = StoreObserver::new(store.clone().into_store(), options(), subscriber);
    observer.notify_group(&[outcome(&first, Outcome::Rejected)]).unwrap();
    assert!(matches!(reported.lock().unwrap()[..], [ChangeOutcome::Stale(_)]));
    observer.notify_group(&[outcome(&second, Outcome::Accepted)]).unwrap();
    store.status(&second, LedgerStatus::Committed);
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Committed);
}

fn malformed_outcomes_do_not_block_others(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let taken = store.take_one("a::b");
    let good = outcome(&taken, Outcome::Accepted);
    let no_id = SubmissionOutcome { batch_header: "zz".to_owned(), ..good.clone() };
    let no_attempt_id = SubmissionOutcome { attempt_id: None, ..good.clone() };
    let observer = observer(&store);
    observer.notify_group(&[no_id, no_attempt_id, good]).unwrap();
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Pending);
}
