//! Operators' actions are logged in the commit of the change. A dry run changes nothing.

use std::time::Duration;

use grid_batch_core::batches::{BatchState, Change, Event, LedgerStatus, Stale};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::{
    ActionEffect, ActionFilter, ActionOutcome, ActionRefusal, ActionSource, Operator,
    OperatorAction, OperatorStore, OperatorTarget, OperatorVerb, RecordedAction,
};
use grid_batch_store::Store;

use crate::fixture::{
    Database, StoreExt, TestStore, batch, by_program, happened, id, on_both, service,
};

on_both! {
    action_is_logged_with_operator_and_reason,
    reason_of_an_operator_is_no_error_of_a_batch,
    refused_action_is_not_logged,
    dry_run_changes_and_logs_nothing,
    log_is_filtered_and_read_in_pages,
    log_outlasts_its_batch,
    batch_that_was_never_sent_is_cancelled,
    batch_that_may_be_at_the_ledger_is_not_cancelled,
    waiting_batch_of_a_restored_database_is_not_cancelled,
    only_a_delayed_batch_is_retried,
    decision_names_its_attempt,
    verb_must_fit_its_target,
}

fn operator() -> Operator {
    Operator { name: "alice".to_owned(), source: ActionSource::Http, instance: None }
}

fn action(verb: OperatorVerb, name: &str, number: u8) -> OperatorAction {
    let (service_id, batch_id) = (service(name), id(number.into()));
    OperatorAction {
        verb,
        target: OperatorTarget::Batch { service_id, batch_id, attempt: None },
        reason: Some("because".to_owned()),
        operator: operator(),
        dry_run: false,
    }
}

fn about(attempt: u32, action: OperatorAction) -> OperatorAction {
    let OperatorTarget::Batch { service_id, batch_id, .. } = action.target else { panic!() };
    let target = OperatorTarget::Batch { service_id, batch_id, attempt: Some(attempt) };
    OperatorAction { target, ..action }
}

fn all(store: &Store) -> Vec<RecordedAction> {
    store.actions(&ActionFilter::default(), None, 100).unwrap()
}

fn refusal(outcome: ActionOutcome) -> ActionRefusal {
    match outcome {
        ActionOutcome::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

fn done(outcome: ActionOutcome) -> ActionEffect {
    match outcome {
        ActionOutcome::Done(effect) => effect,
        other => panic!("{other:?}"),
    }
}

/// A batch that the ledger has, and another one behind it.
fn one_at_the_ledger(store: &TestStore) {
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    store.status(&taken, LedgerStatus::Pending);
}

fn action_is_logged_with_operator_and_reason(db: &Database) {
    let store = db.open();
    one_at_the_ledger(&store);
    let hold = action(OperatorVerb::Hold, "a::b", 1);
    let effect = done(store.act(&hold).unwrap());
    assert_eq!(effect.state, Some(BatchState::Pending));
    let logged = all(&store);
    assert_eq!(logged.len(), 1);
    assert_eq!(logged[0].action, hold);
    assert_eq!(logged[0].acted_at, db.now());
    assert_eq!((&*logged[0].before, &*logged[0].after), ("pending", "pending, held"));

    done(store.act(&about(1, action(OperatorVerb::EndCommitted, "a::b", 1))).unwrap());
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::Committed);
    let logged = all(&store);
    assert_eq!((&*logged[0].before, &*logged[0].after), ("pending, held", "committed"));
    assert!(logged[0].id > logged[1].id);
}

fn reason_of_an_operator_is_no_error_of_a_batch(db: &Database) {
    let store = db.open();
    one_at_the_ledger(&store);
    done(store.act(&action(OperatorVerb::Hold, "a::b", 1)).unwrap());
    done(store.act(&about(1, action(OperatorVerb::Resubmit, "a::b", 1))).unwrap());
    assert_eq!(store.one("a::b", 1).last_error, None);
    let taken = store.take_one("a::b");
    store.outcome(&taken, Outcome::Accepted);
    done(store.act(&about(2, action(OperatorVerb::EndCommitted, "a::b", 1))).unwrap());
    assert_eq!(store.one("a::b", 1).last_error, None);
}

fn refused_action_is_not_logged(db: &Database) {
    let store = db.open();
    one_at_the_ledger(&store);
    let release = store.act(&action(OperatorVerb::Release, "a::b", 1)).unwrap();
    let not_held = Stale::NotHeld { state: BatchState::Pending };
    assert_eq!(refusal(release), ActionRefusal::Batch(not_held));
    for (number, state) in [(1, BatchState::Pending), (2, BatchState::New)] {
        let hold = || store.act(&action(OperatorVerb::Hold, "a::b", number)).unwrap();
        done(hold());
        let logged = all(&store);
        let held = Stale::AlreadyHeld { state };
        assert_eq!(refusal(hold()), ActionRefusal::Batch(held), "as a pause of a paused service");
        assert_eq!(all(&store), logged);
    }
    let logged = all(&store);
    let unknown = store.act(&action(OperatorVerb::Hold, "a::b", 9)).unwrap();
    assert_eq!(unknown, ActionOutcome::NotFound);
    assert_eq!(all(&store), logged);
}

fn dry_run_changes_and_logs_nothing(db: &Database) {
    let store = db.open();
    one_at_the_ledger(&store);
    for (verb, number) in [
        (OperatorVerb::Hold, 1),
        (OperatorVerb::EndInvalid, 1),
        (OperatorVerb::Resubmit, 1),
        (OperatorVerb::Hold, 2),
        (OperatorVerb::Cancel, 2),
    ] {
        let before = store.one("a::b", number.into());
        let attempt = before.progress.attempts;
        let real = about(attempt, action(verb, "a::b", number));
        let dry = OperatorAction { dry_run: true, ..real.clone() };
        let expected = done(store.act(&dry).unwrap());
        assert_eq!(store.one("a::b", number.into()), before, "{verb}");
        assert_eq!(all(&store), [], "{verb}");
        if number == 2 && verb == OperatorVerb::Cancel {
            assert_eq!(done(store.act(&real).unwrap()), expected);
        }
    }
}

fn log_is_filtered_and_read_in_pages(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 2)]);
    let by_bob = Operator { name: "bob".to_owned(), ..operator() };
    done(store.act(&action(OperatorVerb::Hold, "a::b", 1)).unwrap());
    done(store.act(&action(OperatorVerb::Release, "a::b", 1)).unwrap());
    let hold = OperatorAction { operator: by_bob, ..action(OperatorVerb::Hold, "c::d", 2) };
    done(store.act(&hold).unwrap());
    let logged = all(&store);
    let select = |filter: ActionFilter| store.actions(&filter, None, 10).unwrap();
    let all_of = ActionFilter::default;
    assert_eq!(select(ActionFilter { operator: Some("bob".into()), ..all_of() }), logged[..1]);
    let holds = select(ActionFilter { verb: Some(OperatorVerb::Hold), ..all_of() });
    assert_eq!(holds, [logged[0].clone(), logged[2].clone()]);
    let of_service = ActionFilter { service_id: Some(service("a::b")), ..all_of() };
    assert_eq!(select(of_service.clone()), logged[1..]);
    assert_eq!(select(ActionFilter { batch_id: Some(id(2)), ..all_of() }), logged[..1]);
    assert_eq!(select(ActionFilter { batch_id: Some(id(2)), ..of_service }), []);
    assert_eq!(store.actions(&all_of(), None, 2).unwrap(), logged[..2]);
    assert_eq!(store.actions(&all_of(), Some(logged[1].id), 2).unwrap(), logged[2..]);
}

fn log_outlasts_its_batch(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    done(store.act(&action(OperatorVerb::Cancel, "a::b", 1)).unwrap());
    let logged = all(&store);
    db.later(60);
    assert_eq!(store.remove_ended(db.now(), None, 10).unwrap().batches, 1);
    assert_eq!(all(&store), logged);
}

fn batch_that_was_never_sent_is_cancelled(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2), batch("a::b", 3)]);
    done(store.act(&action(OperatorVerb::Cancel, "a::b", 2)).unwrap());
    let delayed = store.take_one("a::b");
    store.outcome(&delayed, Outcome::NotSent);
    done(store.act(&action(OperatorVerb::Cancel, "a::b", 1)).unwrap());
    for number in [1, 2] {
        assert_eq!(store.one("a::b", number).progress.state, BatchState::Invalid);
    }
    assert_eq!(store.take_one("a::b").batch_id, id(3));
}

fn batch_that_may_be_at_the_ledger_is_not_cancelled(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let cancel = || store.act(&action(OperatorVerb::Cancel, "a::b", 1)).unwrap();
    let taken = store.take_one("a::b");
    assert_eq!(refusal(cancel()), Stale::WithSubmitter.into());
    store.outcome(&taken, Outcome::Ambiguous);
    let state = BatchState::InDoubt;
    assert_eq!(refusal(cancel()), Stale::MayBeAtLedger { state }.into());
    store.outcome(&taken, Outcome::Accepted);
    store.status(&taken, LedgerStatus::Committed);
    assert!(matches!(refusal(cancel()), ActionRefusal::Batch(Stale::Transition(_))));
}

/// It may have been sent in the time that was lost.
fn waiting_batch_of_a_restored_database_is_not_cancelled(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    db.restored().mark_restored(true, &by_program()).unwrap();
    store.add_all(&[batch("a::b", 3)]);
    let cancel = |number| store.act(&action(OperatorVerb::Cancel, "a::b", number)).unwrap();
    for (number, state) in [(1, BatchState::InDoubt), (2, BatchState::New)] {
        assert_eq!(refusal(cancel(number)), Stale::MayBeAtLedger { state }.into());
    }
    done(cancel(3));
}

fn only_a_delayed_batch_is_retried(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let retry = |number| store.act(&action(OperatorVerb::Retry, "a::b", number)).unwrap();
    for number in [1, 2] {
        let not_delayed = Stale::NotDelayed { state: BatchState::New };
        assert_eq!(refusal(retry(number)), not_delayed.into());
    }
    let taken = store.take_one("a::b");
    let outcome = Event::Outcome { attempt: taken.attempt, outcome: Outcome::NotSent };
    let retry_at = Some(db.now().plus(Duration::from_secs(3_600)));
    store.record_one(Change { retry_at, ..happened(&taken, outcome) });
    assert!(store.take(&["a::b"]).is_empty());
    assert!(done(retry(1)).next_waits);
    assert_eq!(store.take_one("a::b").batch_id, id(1));
}

fn decision_names_its_attempt(db: &Database) {
    let store = db.open();
    one_at_the_ledger(&store);
    for verb in OperatorVerb::ALL.into_iter().filter(|verb| verb.decides_attempt()) {
        let outcome = store.act(&action(verb, "a::b", 1)).unwrap();
        assert_eq!(refusal(outcome), ActionRefusal::NoAttempt { verb });
        let other = store.act(&about(2, action(verb, "a::b", 1))).unwrap();
        let expected = Stale::DecidedOtherAttempt { given: 2, present: 1 };
        assert_eq!(refusal(other), expected.into());
    }
    assert_eq!(all(&store), []);
}

fn verb_must_fit_its_target(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let verb = OperatorVerb::Drain;
    let outcome = store.act(&action(verb, "a::b", 1)).unwrap();
    assert_eq!(refusal(outcome), ActionRefusal::WrongTarget { verb });
    let verb = OperatorVerb::Hold;
    let target = OperatorTarget::Service(service("a::b"));
    let outcome = store.act(&OperatorAction { target, ..action(verb, "a::b", 1) }).unwrap();
    assert_eq!(refusal(outcome), ActionRefusal::WrongTarget { verb });
}
