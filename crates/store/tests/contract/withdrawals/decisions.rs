//! Decisions about withdrawals are logged in their commit. A dry run changes nothing.

use grid_batch_core::ServiceId;
use grid_batch_core::operators::{
    ActionFilter, OperatorRequest, OperatorStore, OperatorTarget, OperatorVerb,
};
use grid_batch_store::Store;
use grid_batch_withdrawals::{CancelOutcome, RetryOutcome, WithdrawalStore};

use super::fixture::{ACCOUNT, WithdrawalsExt, withdrawal, withdrawal_id};
use crate::fixture::{Database, by_program, on_both, service};

on_both! {
    decisions_about_withdrawals_are_logged,
    dry_runs_about_withdrawals_change_and_log_nothing,
}

const PRESENT: &str = "eip155:1:0x0b";

fn present(_: &str) -> Option<ServiceId> {
    Some(service(PRESENT))
}

fn request(dry_run: bool) -> OperatorRequest {
    OperatorRequest { reason: Some("because".to_owned()), dry_run, ..by_program() }
}

/// The verbs, batches and changes of the log, the first action first.
fn logged(store: &Store) -> Vec<(OperatorVerb, OperatorTarget, String, String)> {
    let mut actions = store.actions(&ActionFilter::default(), None, 100).unwrap();
    actions.reverse();
    let read = actions.into_iter().map(|it| {
        assert_eq!(it.action.reason.as_deref(), Some("because"));
        (it.action.verb, it.action.target, it.before, it.after)
    });
    read.collect()
}

fn target(number: u128, account: &str, generation: u32) -> OperatorTarget {
    let batch_id = withdrawal_id(number).batch_id(generation);
    OperatorTarget::Batch { service_id: service(account), batch_id, attempt: None }
}

fn decisions_about_withdrawals_are_logged(db: &Database) {
    let (store, asked) = (db.open(), request(false));
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    store.reject(&store.take_one(ACCOUNT), "no");
    store.retry_withdrawal(&withdrawal_id(1), &asked).unwrap();
    store.cancel_withdrawal(&withdrawal_id(2), &asked).unwrap();
    let step = store.move_withdrawals(&service(ACCOUNT), &present, None, 9, &asked).unwrap();
    assert_eq!(step.moved.len(), 2);

    let entry = |verb, target, before: &str, after: &str| {
        (verb, target, before.to_owned(), after.to_owned())
    };
    let moved = |number, generation| {
        let (before, after) = (ACCOUNT, PRESENT);
        let (before, after) =
            (format!("at the gas admin {before}"), format!("at the gas admin {after}"));
        (OperatorVerb::MoveWithdrawal, target(number, ACCOUNT, generation), before, after)
    };
    let (retry, cancel) = (OperatorVerb::RetryWithdrawal, OperatorVerb::CancelWithdrawal);
    assert_eq!(
        logged(&store),
        [
            entry(retry, target(1, ACCOUNT, 2), "failed", "scheduled"),
            entry(cancel, target(2, ACCOUNT, 1), "scheduled", "scheduled, to be cancelled"),
            moved(2, 1),
            moved(1, 2),
        ]
    );
}

fn dry_runs_about_withdrawals_change_and_log_nothing(db: &Database) {
    let (store, asked) = (db.open(), request(true));
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    store.reject(&store.take_one(ACCOUNT), "no");
    let before = [1, 2].map(|number| store.details_of(number));
    let retried = store.retry_withdrawal(&withdrawal_id(1), &asked).unwrap();
    assert_eq!(retried, RetryOutcome::Scheduled { generation: 2 });
    let cancelled = store.cancel_withdrawal(&withdrawal_id(2), &asked).unwrap();
    assert!(matches!(cancelled, CancelOutcome::Requested { .. }), "{cancelled:?}");
    let step = store.move_withdrawals(&service(ACCOUNT), &present, None, 9, &asked).unwrap();
    assert_eq!(step.moved.len(), 1);
    assert_eq!([1, 2].map(|number| store.details_of(number)), before);
    assert_eq!(logged(&store), []);
}
