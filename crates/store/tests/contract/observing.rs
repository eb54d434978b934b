use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{
    BatchState, ChangeOutcome, GroupObserver, LedgerStatus, Outcome, ScopeId, ServiceScopeId,
    SubmissionAnswer, SubmissionOutcome, TakenBatch,
};
use grid_batch_store::StoreObserver;

use crate::fixture::{Database, StoreExt, batch, on_both};

on_both! {
    each_outcome_changes_the_state,
    delay_is_the_longer_of_ours_and_the_ledgers,
    late_outcome_is_reported_and_changes_nothing,
    malformed_outcomes_do_not_block_others,
}

const DELAY: Duration = Duration::from_secs(15);

fn outcome(taken: &TakenBatch, outcome: Outcome) -> SubmissionOutcome<ServiceScopeId> {
    SubmissionOutcome {
        batch_header: taken.batch_id.to_string(),
        scope_id: ServiceScopeId::from_service_id(&taken.service_id).unwrap(),
        attempt_id: Some(taken.attempt_id()),
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
        (Outcome::Busy, BatchState::Delayed),
        (Outcome::NotSent, BatchState::Delayed),
        (Outcome::Parked, BatchState::Delayed),
        (Outcome::Refused, BatchState::Delayed),
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
        StoreObserver::new(store.clone().into_store(), DELAY, move |change, recorded| {
            sink.lock().unwrap().push((change.service_id.clone(), recorded));
        });
    let group: Vec<_> = taken.iter().zip(cases).map(|(t, (o, _))| outcome(t, o)).collect();
    observer.notify_group(&group).unwrap();

    let reported = reported.lock().unwrap();
    for (number, (outcome, state)) in (0..).zip(cases) {
        let name = &names[number as usize];
        let stored = store.one(name, number);
        assert_eq!(stored.progress.state, state, "{outcome}");
        let error = (outcome != Outcome::Accepted).then_some("the answer");
        assert_eq!(stored.last_error.as_deref(), error, "{outcome}");
        let until = (state == BatchState::Delayed).then(|| db.now().plus(DELAY));
        assert_eq!(stored.next_try_at, until, "{outcome}");
        let next_waits = state.is_terminal();
        let expected = (stored.service_id, ChangeOutcome::Applied { state, next_waits });
        assert_eq!(reported[number as usize], expected);
    }
}

fn delay_is_the_longer_of_ours_and_the_ledgers(db: &Database) {
    let store = db.open();
    let observer = StoreObserver::new(store.clone().into_store(), DELAY, |_, _| ());
    for (number, asked, delay) in [(1, 5, 15), (2, 60, 60)] {
        let name = format!("s::{number}");
        store.add_all(&[batch(&name, number)]);
        let mut busy = outcome(&store.take_one(&name), Outcome::Busy);
        busy.answer.retry_after = Some(Duration::from_secs(asked));
        observer.notify_group(&[busy]).unwrap();
        let until = db.now().plus(Duration::from_secs(delay));
        assert_eq!(store.one(&name, number).next_try_at, Some(until));
    }
}

fn late_outcome_is_reported_and_changes_nothing(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let first = store.take_one("a::b");
    store.outcome(&first, Outcome::NotSent);
    let second = store.take_one("a::b");
    let reported = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&reported);
    let observer = StoreObserver::new(store.clone().into_store(), DELAY, move |_, recorded| {
        sink.lock().unwrap().push(recorded);
    });
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
    let observer = StoreObserver::new(store.clone().into_store(), DELAY, |_, _| ());
    observer.notify_group(&[no_id, no_attempt_id, good]).unwrap();
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Pending);
}
