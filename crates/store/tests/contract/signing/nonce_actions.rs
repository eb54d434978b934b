//! Operators' decisions about nonces.

use grid_batch_core::Timestamp;
use grid_batch_core::batches::{BatchState, LedgerStatus};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::{
    ActionFilter, ActionOutcome, ActionRefusal, Operator, OperatorAction, OperatorStore,
    OperatorTarget, OperatorVerb,
};
use grid_batch_withdrawals::{NonceUse, SigningStore};

use crate::{
    fixture::{Database, StoreExt, TestStore, on_both, service},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, signed, withdrawal},
};

on_both! {
    range_of_undecided_nonces_is_decided_at_once,
    decision_ends_the_hold_and_the_delay,
    account_starts_at_a_nonce,
    account_does_not_start_below_what_is_signed,
    free_nonces_below_a_signed_one_are_filled,
    dry_run_of_a_decision_changes_nothing,
}

fn act_as(store: &TestStore, verb: OperatorVerb, nonces: [u64; 2], dry_run: bool) -> ActionOutcome {
    let [first, last] = nonces;
    let target = OperatorTarget::Nonces { service_id: service(ACCOUNT), first, last };
    let (reason, operator) = (Some("looked".to_owned()), Operator::program());
    store.act(&OperatorAction { verb, target, reason, operator, dry_run }).unwrap()
}

fn act(store: &TestStore, verb: OperatorVerb, nonces: [u64; 2]) -> ActionOutcome {
    act_as(store, verb, nonces, false)
}

/// The effect of the action, in words.
fn changed(outcome: &ActionOutcome) -> [&str; 2] {
    match outcome {
        ActionOutcome::Done(effect) => [&effect.before, &effect.after],
        other => panic!("{other:?}"),
    }
}

fn next(store: &TestStore) -> Option<u64> {
    store.next_nonce(&service(ACCOUNT)).unwrap()
}

fn with_undecided(db: &Database, count: u64) -> TestStore {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    for nonce in 0..count {
        let undecided = NonceUse::Undecided { hash: None, note: "hidden".to_owned() };
        let at = Timestamp::from_micros(7);
        assert!(store.settle_nonce(&service(ACCOUNT), nonce, at, &undecided).unwrap());
    }
    store
}

fn range_of_undecided_nonces_is_decided_at_once(db: &Database) {
    let store = with_undecided(db, 5);
    let done = act(&store, OperatorVerb::NoncesElsewhere, [0, 3]);
    assert_eq!(
        changed(&done),
        ["4 undecided nonces", "4 nonces from 0 to 3 were used for no open withdrawal"]
    );
    assert_eq!(store.undecided_nonces().unwrap().len(), 1);
    let again = act(&store, OperatorVerb::NoncesElsewhere, [0, 3]);
    assert_eq!(again, ActionOutcome::Refused(ActionRefusal::NotUndecided));
    let logged = store.actions(&ActionFilter::default(), None, 10).unwrap();
    assert_eq!(logged.len(), 1);
    assert_eq!(logged[0].action.verb, OperatorVerb::NoncesElsewhere);
    assert_eq!(logged[0].action.target, OperatorTarget::Service(service(ACCOUNT)));
}

fn decision_ends_the_hold_and_the_delay(db: &Database) {
    let store = with_undecided(db, 1);
    let taken = store.take_one(ACCOUNT);
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "nonce 0 is undecided");
    let done = act(&store, OperatorVerb::NoncesElsewhere, [0, 0]);
    assert!(matches!(done, ActionOutcome::Done(effect) if effect.next_waits));
    let batch = store.details_of(1).batch;
    assert_eq!((batch.progress.state, batch.held), (BatchState::Absent, None));
    let taken = store.take_one(ACCOUNT);
    store.outcome(&taken, Outcome::Parked);
    assert_eq!(store.details_of(1).batch.progress.state, BatchState::Delayed);
    act(&store, OperatorVerb::StartNonce, [9, 9]);
    assert_eq!(store.sign(&store.take_one(ACCOUNT), 0).unwrap().signed.nonce, 9);
}

fn account_starts_at_a_nonce(db: &Database) {
    let store = with_undecided(db, 2);
    let done = act(&store, OperatorVerb::StartNonce, [220, 220]);
    assert_eq!(changed(&done), ["the next nonce was 2", "the next nonce is 220"]);
    assert_eq!((next(&store), store.undecided_nonces().unwrap()), (Some(220), vec![]));
    // The decision was wrong, but nothing was signed.
    act(&store, OperatorVerb::StartNonce, [52, 52]);
    assert_eq!(next(&store), Some(52));
    let again = act(&store, OperatorVerb::StartNonce, [52, 52]);
    assert_eq!(again, ActionOutcome::Refused(ActionRefusal::AlreadyNext { nonce: 52 }));
    let other = OperatorTarget::Nonces { service_id: service("other"), first: 1, last: 1 };
    let (verb, operator) = (OperatorVerb::StartNonce, Operator::program());
    let action = OperatorAction { verb, target: other, reason: None, operator, dry_run: false };
    assert_eq!(store.act(&action).unwrap(), ActionOutcome::NotFound);
}

fn account_does_not_start_below_what_is_signed(db: &Database) {
    let store = with_undecided(db, 0);
    let taken = store.take_one(ACCOUNT);
    assert_eq!(store.sign(&taken, 900).unwrap().signed.nonce, 900);
    let refused = act(&store, OperatorVerb::StartNonce, [52, 52]);
    assert_eq!(refused, ActionOutcome::Refused(ActionRefusal::Signed { nonce: 900 }));
    assert_eq!(next(&store), Some(901));
}

fn free_nonces_below_a_signed_one_are_filled(db: &Database) {
    let store = with_undecided(db, 0);
    let fill = |first, last| act(&store, OperatorVerb::FillNonces, [first, last]);
    assert_eq!(fill(0, 9), ActionOutcome::Refused(ActionRefusal::NothingWaits));
    let taken = store.take_one(ACCOUNT);
    store.sign(&taken, 900).unwrap();
    store.mark_sent(&signed(900, 100).hash, None).unwrap();
    store.outcome(&taken, Outcome::Accepted);
    store.status(&taken, LedgerStatus::Pending);
    let done = fill(52, 899);
    assert_eq!(
        changed(&done),
        ["848 free nonces", "848 nonces from 52 to 899 are filled with empty transfers"]
    );
    assert_eq!(fill(52, 899), ActionOutcome::Refused(ActionRefusal::NothingToFill));
    let too_many = fill(0, 10_000);
    assert_eq!(too_many, ActionOutcome::Refused(ActionRefusal::TooManyNonces { most: 10_000 }));
    let unsettled = store.unsettled_nonces(&service(ACCOUNT)).unwrap();
    assert_eq!((unsettled.next, unsettled.stored.len()), (Some(901), 848));
    assert!(unsettled.stored.iter().all(|it| it.to_fill), "{unsettled:?}");
    assert_eq!(store.details_of(1).batch.progress.state, BatchState::Pending);
}

fn dry_run_of_a_decision_changes_nothing(db: &Database) {
    let store = with_undecided(db, 2);
    let done = act_as(&store, OperatorVerb::StartNonce, [220, 220], true);
    assert_eq!(changed(&done), ["the next nonce was 2", "the next nonce is 220"]);
    assert_eq!((next(&store), store.undecided_nonces().unwrap().len()), (Some(2), 2));
}
