//! Calls: transactions of an account that are no withdrawals, in the same queue.

use std::slice;

use grid_batch_core::batches::{BatchState, LedgerStatus};
use grid_batch_core::events::{EventFilter, EventPosition, EventStore};
use grid_batch_core::queries::{BatchQueryStore, BatchSelection, PageOrder};
use grid_batch_withdrawals::{
    Call, ClosedNonce, DayLimit, EventLog, FailedFilter, FinalTransaction, NewSignedTransaction,
    NonceOutcome, Payer, Payment, PaymentLimitError, RetryOutcome, ScheduleOutcome, SigningStore,
    SpeedUpOutcome, Terms, Withdrawal, WithdrawalConflict, WithdrawalEnd, WithdrawalFilter,
    WithdrawalState, WithdrawalStore,
};

use super::fixture::{
    ACCOUNT, KNOWN, WithdrawalsExt, attempt_of, is_stored, withdrawal, withdrawal_id,
};
use crate::fixture::{Database, TestStore, by_program, on_both, service};

on_both! {
    call_is_stored_with_everything,
    same_call_again_is_known_and_other_contents_conflict,
    calls_and_withdrawals_are_listed_apart,
    calls_take_their_turns_among_withdrawals,
    result_of_a_call_is_stored_with_its_events,
    failed_call_is_retried_without_payment_limits,
    value_counts_towards_every_limit_of_a_call,
    failed_call_counts_no_more_and_its_retry_does,
    repeated_call_may_have_other_limits,
    only_a_sent_call_is_sped_up,
    unpaid_calls_are_found_by_what_they_do,
    event_of_a_call_names_it,
}

fn call(data: &str) -> Call {
    Call {
        to: Some("0xcontract".to_owned()),
        value: "5".to_owned(),
        data: data.to_owned(),
        gas_limit: Some(100_000),
        maximum_gas_price: Some(30_000_000_000),
        deadline: Some(1_700_000_000_000_000),
        label: Some("order 7".to_owned()),
        abi: vec!["event Paid(address)".to_owned()],
        day_limits: Vec::new(),
    }
}

fn stored_call(number: u128, call: Call) -> Withdrawal {
    Withdrawal::of_call(withdrawal_id(number), service(ACCOUNT), call, Some("key".to_owned()))
}

fn filter(calls: bool) -> WithdrawalFilter {
    WithdrawalFilter { calls, ..WithdrawalFilter::default() }
}

fn numbers(store: &TestStore, filter: &WithdrawalFilter) -> Vec<Withdrawal> {
    let page = store.withdrawals(filter, None, 9).unwrap().withdrawals;
    page.into_iter().map(|details| details.withdrawal).collect()
}

fn call_is_stored_with_everything(db: &Database) {
    let store = db.open();
    let (value, data) = ("0".to_owned(), "0x60".to_owned());
    let creation = Call { to: None, value, data, ..Call::default() };
    let calls = [stored_call(1, call("0x01")), stored_call(2, creation)];
    store.schedule_all(&calls);
    for (number, expected) in (1..).zip(&calls) {
        let details = store.details_of(number);
        assert_eq!(details.withdrawal, *expected);
        let payment = store.payment(&service(ACCOUNT), &details.batch.batch_id).unwrap().unwrap();
        assert_eq!((payment.call, payment.nonce), (expected.call.clone(), None));
    }
    let mine = BatchSelection { label: Some("order 7".parse().unwrap()), ..Default::default() };
    let page = store.batch_page(&mine, PageOrder::NewestFirst, None, 9).unwrap();
    assert_eq!(page.batches.len(), 1);
}

fn same_call_again_is_known_and_other_contents_conflict(db: &Database) {
    let store = db.open();
    let first = stored_call(1, call("0x01"));
    store.schedule_all(slice::from_ref(&first));
    assert_eq!(store.schedule(slice::from_ref(&first)).unwrap(), [KNOWN]);
    let others = [
        call("0x02"),
        Call { gas_limit: None, ..call("0x01") },
        Call { to: None, ..call("0x01") },
        Call { label: None, ..call("0x01") },
    ];
    for other in others {
        let stored = Box::new(first.clone());
        let answer = store.schedule(&[stored_call(1, other)]).unwrap();
        assert_eq!(answer, [Err(WithdrawalConflict::OtherTerms { stored })]);
    }
}

fn calls_and_withdrawals_are_listed_apart(db: &Database) {
    let store = db.open();
    let (call, paid) = (stored_call(1, call("0x01")), withdrawal(ACCOUNT, 2));
    store.schedule_all(&[call.clone(), paid.clone()]);
    assert_eq!(numbers(&store, &filter(true)), slice::from_ref(&call));
    assert_eq!(numbers(&store, &filter(false)), [paid]);
    let of_address = |to: &str| WithdrawalFilter {
        beneficiary: Some(to.to_owned()),
        service_id: Some(service(ACCOUNT)),
        ..filter(true)
    };
    assert_eq!(numbers(&store, &of_address("0xcontract")), [call]);
    assert_eq!(numbers(&store, &of_address("0xother")), []);
}

fn calls_take_their_turns_among_withdrawals(db: &Database) {
    let store = db.open();
    store.schedule_all(&[
        withdrawal(ACCOUNT, 1),
        stored_call(2, call("0x01")),
        withdrawal(ACCOUNT, 3),
    ]);
    for number in 1..=3 {
        let (taken, nonce) = store.take_and_sign(ACCOUNT);
        assert_eq!(taken.batch_id, withdrawal_id(number).batch_id(1));
        assert_eq!(u128::from(nonce), number - 1);
        store.accept_and(&taken, LedgerStatus::Committed);
    }
}

fn result_of_a_call_is_stored_with_its_events(db: &Database) {
    let store = db.open();
    store.schedule_all(&[stored_call(1, call("0x01")), stored_call(2, call("0x02"))]);
    let log = EventLog {
        address: "0xcontract".to_owned(),
        topics: vec!["0x01".to_owned()],
        data: "0x".to_owned(),
    };
    for (number, contract) in [(1, None), (2, Some("0xnew".to_owned()))] {
        let (taken, nonce) = store.take_and_sign(ACCOUNT);
        let outcome = Some(NonceOutcome::Executed { contract });
        let transaction = Some(FinalTransaction {
            hash: [9; 32],
            block: 12,
            gas_used: Some(60_000),
            gas_price: Some(7_000_000_000),
            logs: vec![log.clone()],
        });
        let note = "executed".to_owned();
        let closed =
            ClosedNonce { nonce, note, outcome: outcome.clone(), transaction: transaction.clone() };
        store.close_nonces(&service(ACCOUNT), &[closed]).unwrap();
        store.accept_and(&taken, LedgerStatus::Committed);
        let details = store.details_of(number);
        let stored = details.nonce.unwrap();
        assert_eq!((stored.outcome, stored.final_transaction), (outcome, transaction));
        assert_eq!(details.end, Some(WithdrawalEnd::Withdrawn));
        // A reorganization may drop it.
        assert_eq!(store.transactions_from(&service(ACCOUNT), nonce).unwrap().len(), 1);
    }
}

fn failed_call_is_retried_without_payment_limits(db: &Database) {
    let store = db.open();
    store.schedule_all(&[stored_call(1, call("0x01"))]);
    let taken = store.take_one(ACCOUNT);
    store.reject(&taken, "it would fail");
    assert_eq!(store.failed_withdrawals(&FailedFilter::default(), None, 9).unwrap(), []);
    store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    let details = store.details_of(1);
    assert_eq!((details.generation, details.batch.progress.state), (2, BatchState::New));
    assert_eq!(details.withdrawal.call, Some(call("0x01")));
}

/// Two limits: of the account, and of the token that requests the call.
fn limited(data: &str, value: &str, of_account: &str, of_token: &str) -> Call {
    let limit = |payer, per_day: &str| DayLimit::new(payer, &per_day.parse().unwrap());
    let day_limits = vec![
        limit(Payer::Account(ACCOUNT.to_owned()), of_account),
        limit(Payer::Token("ab".to_owned()), of_token),
    ];
    Call { value: value.to_owned(), day_limits, ..call(data) }
}

/// Who has how much left, if a call is refused.
fn refusal(store: &TestStore, number: u128, call: Call) -> Option<(Payer, String)> {
    match store.schedule(&[stored_call(number, call)]).unwrap().remove(0) {
        Ok(_) => None,
        Err(WithdrawalConflict::PaymentLimit(PaymentLimitError::Day { payer, left, .. })) => {
            Some((payer, left.to_string()))
        }
        other => panic!("{other:?}"),
    }
}

fn value_counts_towards_every_limit_of_a_call(db: &Database) {
    let store = db.open();
    let (account, token) = (Payer::Account(ACCOUNT.to_owned()), Payer::Token("ab".to_owned()));
    assert_eq!(refusal(&store, 1, limited("0x01", "6", "10", "7")), None);
    assert_eq!(refusal(&store, 2, limited("0x02", "2", "10", "7")), Some((token, "1".to_owned())));
    assert_eq!(
        refusal(&store, 3, limited("0x03", "5", "10", "99")),
        Some((account, "4".to_owned()))
    );
    // What was refused is not counted.
    assert_eq!(refusal(&store, 4, limited("0x04", "1", "10", "7")), None);
    // Without a limit, and without value, nothing is refused.
    assert_eq!(refusal(&store, 5, call("0x05")), None);
    db.later(25 * 3_600);
    assert_eq!(refusal(&store, 7, limited("0x07", "7", "10", "7")), None);
}

fn failed_call_counts_no_more_and_its_retry_does(db: &Database) {
    let store = db.open();
    store.schedule_all(&[stored_call(1, limited("0x01", "6", "10", "7"))]);
    store.reject(&store.take_one(ACCOUNT), "it would fail");
    assert_eq!(refusal(&store, 2, limited("0x02", "7", "10", "7")), None);
    let retried = store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert!(matches!(retried, RetryOutcome::PaymentLimit(_)), "{retried:?}");
    store.reject(&store.take_one(ACCOUNT), "it would fail");
    let retried = store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(retried, RetryOutcome::Scheduled { generation: 2 });
    assert!(refusal(&store, 3, limited("0x03", "2", "10", "7")).is_some());
}

fn repeated_call_may_have_other_limits(db: &Database) {
    let store = db.open();
    store.schedule_all(&[stored_call(1, limited("0x01", "6", "10", "7"))]);
    for same in [limited("0x01", "6", "9", "6"), Call { value: "6".to_owned(), ..call("0x01") }] {
        assert_eq!(store.schedule(&[stored_call(1, same)]).unwrap(), [KNOWN]);
    }
}

fn only_a_sent_call_is_sped_up(db: &Database) {
    let store = db.open();
    let speed_up = || store.speed_up_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(speed_up(), SpeedUpOutcome::NotFound);
    store.schedule_all(&[stored_call(1, call("0x01"))]);
    let state = WithdrawalState::Scheduled;
    assert_eq!(speed_up(), SpeedUpOutcome::NotSent { state });
    let taken = store.take_one(ACCOUNT);
    let signed = store.sign(&taken, 0).unwrap();
    assert!(matches!(speed_up(), SpeedUpOutcome::NotSent { .. }));
    store.mark_sent(&signed.signed.hash, None).unwrap();
    db.later(1);
    assert_eq!(speed_up(), SpeedUpOutcome::Requested);
    let payment = || store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap();
    let is_due =
        |payment: Payment| payment.must_speed_up(payment.open_nonce().unwrap().best().unwrap());
    assert!(is_due(payment()));
    store.mark_sent(&signed.signed.hash, None).unwrap();
    assert!(is_due(payment()), "the same bytes do not raise fees");
    db.later(1);
    let dearer = NewSignedTransaction { hash: [8; 32], max_fee: 200, ..signed.signed };
    store.replace_transaction(&attempt_of(&taken), dearer).unwrap().unwrap();
    assert!(!is_due(payment()), "once for each request");
    store.cancel_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert!(matches!(speed_up(), SpeedUpOutcome::NotSent { .. }));
}

fn unpaid_calls_are_found_by_what_they_do(db: &Database) {
    let store = db.open();
    let creation = Call { to: None, ..call("0x01") };
    store.schedule_all(&[
        stored_call(1, call("0x01")),
        stored_call(2, call("0x02")),
        stored_call(3, creation),
        withdrawal(ACCOUNT, 4),
    ]);
    let found = |to: Option<&str>, data: &str| {
        let (to, data) = (to.map(str::to_owned), data.to_owned());
        let terms = Terms::Call { to, value: "5".to_owned(), data };
        let unpaid = store.unpaid_withdrawals(&service(ACCOUNT), &terms).unwrap();
        unpaid.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    assert_eq!(found(Some("0xcontract"), "0x01"), [withdrawal_id(1)]);
    assert_eq!(found(Some("0xcontract"), "0x02"), [withdrawal_id(2)]);
    assert_eq!(found(None, "0x01"), [withdrawal_id(3)]);
    assert_eq!(found(Some("0xmember4"), "0x"), []);
}

fn event_of_a_call_names_it(db: &Database) {
    let store = db.open();
    let answers = store.schedule(&[stored_call(1, call("0x01"))]).unwrap();
    assert!(is_stored(&answers[0]) && answers[0] != Ok(ScheduleOutcome::AlreadyStored));
    let page = store.events(&EventPosition::Oldest, &EventFilter::default(), 9).unwrap().unwrap();
    let told = page.events.into_iter().next().unwrap().event.withdrawal.unwrap();
    assert!(told.is_call);
    assert_eq!((told.pool.as_str(), told.amount.as_str()), ("0xcontract", "5"));
}
