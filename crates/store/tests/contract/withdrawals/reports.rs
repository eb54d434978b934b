//! The stored data about withdrawals that ended differently on the chain than their batches.

use grid_batch_core::batches::{Decision, LedgerStatus};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::{
    ActionOutcome, ActionRefusal, Operator, OperatorAction, OperatorStore, OperatorTarget,
    OperatorVerb,
};
use grid_batch_withdrawals::{
    ClosedNonce, FailedFilter, FinalTransaction, NonceOutcome, RetryOutcome, SigningStore,
    WithdrawalFilter, WithdrawalState, WithdrawalStore,
};

use super::fixture::{ACCOUNT, WithdrawalsExt, withdrawal, withdrawal_id};
use crate::fixture::{Database, StoreExt, TestStore, by_program, on_both, service};

on_both! {
    final_transaction_is_stored_with_the_outcome,
    payment_without_the_event_waits_for_a_decision,
    payment_without_the_event_of_a_retried_withdrawal_is_decided,
    payment_without_the_event_is_not_held_before_its_batch_ends,
    payment_after_an_operators_decision_is_reported,
    withdrawals_are_found_by_their_idempotency_key,
}

fn close(store: &TestStore, nonce: u64, outcome: NonceOutcome) -> (FinalTransaction, u64) {
    let transaction = FinalTransaction {
        hash: [9; 32],
        block: 12,
        gas_used: Some(60_000),
        gas_price: Some(7_000_000_000),
        logs: Vec::new(),
    };
    let (note, outcome) = ("its note".to_owned(), Some(outcome));
    let closed = ClosedNonce { nonce, note, outcome, transaction: Some(transaction.clone()) };
    let paid = store.close_nonces(&service(ACCOUNT), &[closed]).unwrap();
    (transaction, paid)
}

fn elsewhere(store: &TestStore, nonce: u64) -> ActionOutcome {
    let target = OperatorTarget::Nonces { service_id: service(ACCOUNT), first: nonce, last: nonce };
    let (verb, operator) = (OperatorVerb::NoncesElsewhere, Operator::program());
    let action = OperatorAction { verb, target, reason: None, operator, dry_run: false };
    store.act(&action).unwrap()
}

fn withdrawn() -> NonceOutcome {
    NonceOutcome::Withdrawn { withdrawal_id: "7".to_owned() }
}

fn state(store: &TestStore, number: u128) -> WithdrawalState {
    let details = store.details_of(number);
    let state = WithdrawalState::of(&details);
    let filter = WithdrawalFilter { states: [state].into(), ..Default::default() };
    let listed = store.withdrawals(&filter, None, 9).unwrap().withdrawals;
    assert!(listed.iter().any(|it| it.withdrawal.id == withdrawal_id(number)), "{state}");
    state
}

fn final_transaction_is_stored_with_the_outcome(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let (transaction, _) = close(&store, nonce, withdrawn());
    store.accept_and(&taken, LedgerStatus::Committed);
    let stored = store.details_of(1).nonce.unwrap();
    assert_eq!(stored.final_transaction, Some(transaction));
    assert_eq!(state(&store, 1), WithdrawalState::Withdrawn);
}

fn payment_without_the_event_waits_for_a_decision(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2, 3].map(|number| withdrawal(ACCOUNT, number)));
    for nonce in 0..2 {
        let (taken, _) = store.take_and_sign(ACCOUNT);
        close(&store, nonce, NonceOutcome::WithoutEvent);
        store.accept_and(&taken, LedgerStatus::Committed);
    }
    // The next one is not delayed.
    assert_eq!(store.take_and_sign(ACCOUNT).1, 2);
    assert_eq!(store.service_counts().unwrap().held, 1);
    for (number, paid) in [(1, Some(withdrawal_id(1))), (2, None)] {
        assert_eq!(state(&store, number), WithdrawalState::Held);
        let refused = RetryOutcome::NotFailed { state: WithdrawalState::Held };
        assert_eq!(store.retry_withdrawal(&withdrawal_id(number), &by_program()).unwrap(), refused);
        let (account, nonce) = (service(ACCOUNT), u64::try_from(number - 1).unwrap());
        let undecided: Vec<u64> =
            store.undecided_nonces().unwrap().iter().map(|(_, it)| it.nonce).collect();
        assert_eq!(undecided, Vec::from_iter(nonce..2));
        assert!(!store.decide_nonce(&account, nonce, &withdrawal_id(3)).unwrap());
        match paid {
            Some(id) => {
                assert!(store.decide_nonce(&account, nonce, &id).unwrap());
                assert!(!store.decide_nonce(&account, nonce, &id).unwrap());
            }
            None => {
                assert!(matches!(elsewhere(&store, nonce), ActionOutcome::Done(_)));
                let again = ActionOutcome::Refused(ActionRefusal::NotUndecided);
                assert_eq!(elsewhere(&store, nonce), again);
            }
        }
    }
    assert_eq!(store.service_counts().unwrap().held, 0);
    assert_eq!(state(&store, 1), WithdrawalState::Withdrawn);
    assert_eq!(state(&store, 2), WithdrawalState::Failed);
    let failed = FailedFilter::default().find(&*store, 9).unwrap().withdrawals;
    assert_eq!(failed.len(), 1);
    let retried = store.retry_withdrawal(&withdrawal_id(2), &by_program()).unwrap();
    assert_eq!(retried, RetryOutcome::Scheduled { generation: 2 });
}

/// The last nonce of a withdrawal keeps its generation when it is retried.
fn payment_without_the_event_of_a_retried_withdrawal_is_decided(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "nothing can be proved");
    let (batch, attempt) = (&taken.batch_id, taken.attempt);
    store.decide(&taken.service_id, batch, attempt, Decision::Invalid).unwrap();
    store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    let taken = store.take_one(ACCOUNT);
    close(&store, nonce, NonceOutcome::WithoutEvent);
    store.accept_and(&taken, LedgerStatus::Committed);
    assert_eq!(state(&store, 1), WithdrawalState::Held);
    assert!(store.decide_nonce(&service(ACCOUNT), nonce, &withdrawal_id(1)).unwrap());
    assert_eq!(state(&store, 1), WithdrawalState::Withdrawn);
}

/// An operator can decide about it when its batch has ended.
fn payment_without_the_event_is_not_held_before_its_batch_ends(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.outcome(&taken, Outcome::Accepted);
    close(&store, nonce, NonceOutcome::WithoutEvent);
    assert_eq!(state(&store, 1), WithdrawalState::Pending);
    assert!(store.undecided_nonces().unwrap().is_empty());
    assert_eq!(store.service_counts().unwrap().held, 0);
    let refused = ActionOutcome::Refused(ActionRefusal::NotUndecided);
    assert_eq!(elsewhere(&store, nonce), refused);
}

fn payment_after_an_operators_decision_is_reported(db: &Database) {
    let store = db.open();
    for (number, is_closed_first) in [(1, false), (2, true)] {
        store.schedule_all(&[withdrawal(ACCOUNT, number)]);
        let (taken, nonce) = store.take_and_sign(ACCOUNT);
        let close_nonce = || close(&store, nonce, withdrawn()).1;
        if is_closed_first {
            assert_eq!(close_nonce(), 0);
        }
        store.outcome(&taken, Outcome::Ambiguous);
        store.hold(&taken, "nothing can be proved");
        let (batch, attempt) = (&taken.batch_id, taken.attempt);
        store.decide(&taken.service_id, batch, attempt, Decision::Invalid).unwrap();
        if !is_closed_first {
            assert_eq!(state(&store, number), WithdrawalState::Failed);
            assert_eq!((close_nonce(), close_nonce()), (1, 0));
        }
        assert_eq!(state(&store, number), WithdrawalState::Withdrawn);
        assert!(FailedFilter::default().find(&*store, 9).unwrap().withdrawals.is_empty());
    }
}

fn withdrawals_are_found_by_their_idempotency_key(db: &Database) {
    let store = db.open();
    let keyed = |number, key: Option<&str>| grid_batch_withdrawals::Withdrawal {
        idempotency_key: key.map(str::to_owned),
        ..withdrawal(ACCOUNT, number)
    };
    store.schedule_all(&[keyed(1, Some("invoice 17")), keyed(2, None), keyed(3, Some("invoice"))]);
    let idempotency_key = Some("invoice 17".to_owned());
    let filter = WithdrawalFilter { idempotency_key, ..Default::default() };
    let found = store.withdrawals(&filter, None, 9).unwrap().withdrawals;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].withdrawal, keyed(1, Some("invoice 17")));
}
