//! The statements about withdrawals.

use std::{ops::Range, time::Duration};

use grid_batch_core::batches::{Change, Event, LedgerStatus};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::events::{EventFilter, EventPosition, EventStore};
use grid_batch_core::ledger::{AttemptId, Outcome};
use grid_batch_core::operators::{
    ActionOutcome, Operator, OperatorAction, OperatorRequest, OperatorStore, OperatorTarget,
    OperatorVerb,
};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::TakenBatch;
use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_withdrawals::{
    BatchAttempt, ClosedNonce, NewSignedTransaction, NonceOutcome, NonceUse, Reward, RewardId,
    SigningStore, Terms, Withdrawal, WithdrawalFilter, WithdrawalId, WithdrawalKind,
    WithdrawalStore, WithdrawalTexts,
};

use super::{Recording, execute, recording, register_worker, texts};
use crate::{ClaimStore, Store, StoreOptions};

/// A withdrawal of one of 100 accounts.
fn withdrawal(number: u64) -> Withdrawal {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    Withdrawal {
        id: WithdrawalId::from_bytes(id),
        service_id: format!("account::{:02}", number % 100).parse().unwrap(),
        kind: WithdrawalKind::Propose,
        reward_id: None,
        pool: format!("pool {}", number % 200),
        beneficiary: format!("member {}", number % 1_000),
        amount: "1".to_owned(),
        idempotency_key: None,
        call: None,
        trace: None,
    }
}

fn schedule(store: &Store, numbers: Range<u64>) {
    let withdrawals: Vec<Withdrawal> = numbers.map(withdrawal).collect();
    store.schedule(&withdrawals).unwrap();
}

fn transaction(attempt: &BatchAttempt, nonce: u64, max_fee: u128) -> NewSignedTransaction {
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(&attempt.batch_id.as_bytes()[..16]);
    hash[16..].copy_from_slice(&max_fee.to_be_bytes());
    NewSignedTransaction { nonce, hash, bytes: vec![7; 120], max_fee, tip: 1, is_filler: false }
}

fn sign(store: &Store, taken: &TakenBatch) -> (BatchAttempt, u64) {
    let TakenBatch { attempt, epoch, batch_id, .. } = *taken;
    let attempt_id = AttemptId { attempt, epoch };
    let service_id = taken.service_id.clone();
    let attempt = BatchAttempt { service_id, batch_id, attempt_id };
    let mut sign = |nonce| Ok(transaction(&attempt, nonce, 1));
    let nonce = store.assign_nonce(&attempt, 0, &mut sign).unwrap().unwrap().signed.nonce;
    (attempt, nonce)
}

/// Schedules 2,000 withdrawals of 100 accounts, and commits 200 of them.
pub(super) fn load_withdrawals(claims: &ClaimStore) -> Vec<ServiceId> {
    let store = claims.store();
    schedule(store, 0..2_000);
    let accounts: Vec<ServiceId> = (0..100).map(|number| withdrawal(number).service_id).collect();
    claims.take_services(&accounts).unwrap();
    for round in 0..2 {
        let taken = claims.take_next(&accounts).unwrap();
        let mut changes = Vec::new();
        for taken in &taken {
            let (attempt, nonce) = sign(store, taken);
            let withdrawal_id = round.to_string();
            let outcome = NonceOutcome::Withdrawn { withdrawal_id };
            store.close_nonce(&attempt.service_id, nonce, &outcome).unwrap();
            let accepted = Event::Outcome { attempt: 1, outcome: Outcome::Accepted };
            for event in [accepted, Event::status(LedgerStatus::Committed)] {
                changes.push(Change::new(attempt.service_id.clone(), attempt.batch_id, event));
            }
        }
        store.record(&changes).unwrap();
    }
    accounts
}

/// Schedules withdrawals, signs one, and cancels, fails and retries it.
fn process_withdrawals(claims: &ClaimStore, accounts: &[ServiceId]) {
    let store = claims.store();
    let reward = Reward {
        id: RewardId::from_bytes([1; 16]),
        pool: "pool 1".to_owned(),
        amount: "1".to_owned(),
        once_per_member: true,
        created_at: Timestamp::from_micros(0),
    };
    store.add_reward(&reward).unwrap().unwrap();
    schedule(store, 2_000..2_100);

    let of_new_pool = Withdrawal { pool: "new pool".to_owned(), ..withdrawal(3_000) };
    store.schedule(&[of_new_pool]).unwrap();
    assert_eq!(store.pool_sums(&["pool 1", "new pool"]).unwrap().len(), 2);

    let contains = WithdrawalTexts { pool: Some("NEW".to_owned()), ..WithdrawalTexts::default() };
    let filter = WithdrawalFilter { contains, ..WithdrawalFilter::default() };
    assert_eq!(store.withdrawals(&filter, None, 9).unwrap().withdrawals.len(), 1);

    let taken = claims.take_next(&accounts[..1]).unwrap().remove(0);
    store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap();
    let (attempt, nonce) = sign(store, &taken);
    let dearer = transaction(&attempt, nonce, 2);
    store.replace_transaction(&attempt, dearer.clone()).unwrap().unwrap();
    store.mark_sent(&dearer.hash, None).unwrap();
    store.next_nonce(&attempt.service_id).unwrap().unwrap();
    let mut fill =
        |nonce| Ok(NewSignedTransaction { is_filler: true, ..transaction(&attempt, nonce, 3) });
    assert_eq!(store.fill_nonce(&attempt, nonce - 1, &mut fill).unwrap(), None);
    store.note(&attempt.service_id, nonce, Some("mined")).unwrap();
    store.record_foreign_use(&attempt.service_id, nonce, &[1; 32]).unwrap();
    store.record_highest_block(7).unwrap();
    store.highest_block().unwrap();
    store.has_paid("pool 1").unwrap();
    assert_eq!(store.transactions_from(&attempt.service_id, nonce).unwrap(), [dearer]);
    assert_eq!(store.open_payments_from(&attempt.service_id, nonce).unwrap().len(), 1);

    let events = store.events(&EventPosition::Oldest, &EventFilter::default(), 9).unwrap().unwrap();
    assert!(events.events.iter().all(|event| event.event.withdrawal.is_some()));

    settle_nonces(store, &attempt, nonce);
    sign_ahead(claims, &accounts[3..4]);

    let id = store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap().withdrawal_id;
    store.speed_up_withdrawal(&id, &OperatorRequest::program()).unwrap();
    store.cancel_withdrawal(&id, &OperatorRequest::program()).unwrap();
    store.close_nonce(&attempt.service_id, nonce, &NonceOutcome::Cancelled).unwrap();
    let event = Event::Outcome { attempt: 1, outcome: Outcome::Rejected };
    store.record(&[Change::new(taken.service_id, taken.batch_id, event)]).unwrap();
    assert_eq!(store.gas_admin_queues(&accounts[..1]).unwrap()[0].last_failures.len(), 1);
    store.retry_withdrawal(&id, &OperatorRequest::program()).unwrap();

    correct_ends(claims, &accounts[4..6]);

    park_pool(claims, &accounts[6..7]);

    let to = |_: &str| Some(accounts[2].clone());
    let step =
        store.move_withdrawals(&accounts[3], &to, None, 5, &OperatorRequest::program()).unwrap();
    assert_eq!((step.kept.len(), step.moved.len()), (2, 3));
}

/// Pays a failed withdrawal, and records an operator's decisions about withdrawals that were mined without an event.
fn correct_ends(claims: &ClaimStore, accounts: &[ServiceId]) {
    let store = claims.store();
    let (rejected, accepted) = (Outcome::Rejected, Outcome::Accepted);
    let withdrawn = NonceOutcome::Withdrawn { withdrawal_id: "7".to_owned() };
    for (account, outcome, end, is_paid) in [
        (0, rejected, withdrawn, true),
        (1, accepted, NonceOutcome::WithoutEvent, false),
        (1, accepted, NonceOutcome::WithoutEvent, true),
    ] {
        let taken = claims.take_next(&accounts[account..=account]).unwrap().remove(0);
        let (BatchAttempt { service_id, batch_id, .. }, nonce) = sign(store, &taken);
        let record = |event| {
            store.record(&[Change::new(service_id.clone(), batch_id, event)]).unwrap();
        };
        record(Event::Outcome { attempt: 1, outcome });
        let note = "its note".to_owned();
        let closed = ClosedNonce { nonce, note, outcome: Some(end), transaction: None };
        store.close_nonces(&service_id, &[closed]).unwrap();
        if outcome == accepted {
            record(Event::status(LedgerStatus::Committed));
            let payment = store.payment(&service_id, &batch_id).unwrap().unwrap();
            if is_paid {
                let paid = store.decide_nonce(&service_id, nonce, &payment.withdrawal_id);
                assert!(paid.unwrap());
            } else {
                let verb = OperatorVerb::NoncesElsewhere;
                let outcome = decide(store, &service_id, verb, [nonce, nonce]);
                assert!(matches!(outcome, ActionOutcome::Done(_)), "{outcome:?}");
            }
        }
    }
}

/// Signs for a withdrawal after the one under way, and closes both nonces.
fn sign_ahead(claims: &ClaimStore, account: &[ServiceId]) {
    let store = claims.store();
    let taken = claims.take_next(account).unwrap().remove(0);
    let (attempt, nonce) = sign(store, &taken);
    let event = Event::Outcome { attempt: attempt.attempt_id.attempt, outcome: Outcome::Accepted };
    let accepted = Change::new(attempt.service_id.clone(), attempt.batch_id, event);
    store.record(&[accepted]).unwrap();
    let paid = store.payment(&attempt.service_id, &attempt.batch_id).unwrap().unwrap();
    store.cancel_withdrawal(&paid.withdrawal_id, &OperatorRequest::program()).unwrap();
    let following = store.following_payments(&attempt.service_id, &attempt.batch_id, 16);
    let following = following.unwrap().unwrap();
    let ahead = transaction(&attempt, nonce + 1, 2);
    assert!(store.sign_following(&following, vec![ahead.clone()]).unwrap());
    store.mark_all_sent(&[(ahead.hash, None)]).unwrap();
    assert!(
        store.replace_following(&following, vec![transaction(&attempt, nonce + 1, 5)]).unwrap()
    );
    let outcome = |nonce| ClosedNonce {
        nonce,
        note: "reverted".to_owned(),
        outcome: Some(NonceOutcome::Reverted),
        transaction: None,
    };
    store.close_nonces(&attempt.service_id, &[outcome(nonce), outcome(nonce + 1)]).unwrap();
}

/// Parks a pool, pays a withdrawal of the other one, and reads what waits.
fn park_pool(claims: &ClaimStore, account: &[ServiceId]) {
    let store = claims.store();
    let record = |taken: &TakenBatch, event| {
        let change = Change::new(taken.service_id.clone(), taken.batch_id, event);
        let retry_at = Some(store.now().plus(Duration::from_secs(60)));
        store.record(&[Change { retry_at, ..change }]).unwrap();
    };
    let parked = claims.take_next(account).unwrap().remove(0);
    record(&parked, Event::Outcome { attempt: parked.attempt, outcome: Outcome::PoolParked });
    let paid = claims.take_next(account).unwrap().remove(0);
    assert_ne!(paid.batch_id, parked.batch_id);
    sign(store, &paid);
    record(&paid, Event::Outcome { attempt: paid.attempt, outcome: Outcome::Accepted });
    let following = store.following_payments(&paid.service_id, &paid.batch_id, 16);
    assert!(!following.unwrap().unwrap().payments.is_empty());
    let batches = store.open_batches(&paid.service_id, 9).unwrap();
    let created_at: Vec<Timestamp> = batches.iter().map(|batch| batch.created_at).collect();
    assert_eq!(store.ahead(&paid.service_id, &created_at).unwrap().len(), created_at.len());
    record(&paid, Event::status(LedgerStatus::Committed));
}

/// Reads what may be unsettled, adopts a transaction, moves it, and decides about others.
fn settle_nonces(store: &Store, attempt: &BatchAttempt, nonce: u64) {
    let service_id = &attempt.service_id;
    store.first_open(service_id).unwrap();
    let used_at = store.unsettled_since(service_id).unwrap().unwrap();
    store.unsettled_nonces(service_id).unwrap();
    // The account has the numbers that end in 00; 900 and 1,900 have the same terms.
    let Withdrawal { pool, beneficiary, .. } = withdrawal(1_900);
    assert!(store.pools(service_id).unwrap().contains(&pool));
    let terms = Terms::Withdrawal { pool, beneficiary, amount: "1".to_owned() };
    let call = Terms::Call { to: None, value: "1".to_owned(), data: "0x".to_owned() };
    assert_eq!(store.unpaid_withdrawals(service_id, &call).unwrap(), []);
    let unpaid = store.unpaid_withdrawals(service_id, &terms).unwrap();
    let mut transaction = transaction(attempt, nonce + 1, 4);
    let id = unpaid.iter().find(|it| it.is_open).unwrap().id;
    let settle = |nonce, nonce_use: NonceUse| {
        assert!(store.settle_nonce(service_id, nonce, used_at, &nonce_use).unwrap());
    };
    settle(nonce + 1, NonceUse::Withdrawal { id, transaction: transaction.clone() });
    transaction.max_fee += 1;
    transaction.hash[31] += 1;
    settle(nonce + 1, NonceUse::Withdrawal { id, transaction });
    settle(nonce + 2, NonceUse::Elsewhere { hash: None, note: "elsewhere".to_owned() });
    for nonce in [nonce + 3, nonce + 9] {
        settle(nonce, NonceUse::Undecided { hash: None, note: "not shown".to_owned() });
    }
    assert_eq!(store.undecided_nonces().unwrap().len(), 2);
    decide(store, service_id, OperatorVerb::NoncesElsewhere, [nonce + 3, nonce + 3]);
    let other = store.unpaid_withdrawals(service_id, &terms).unwrap();
    let other = other.iter().find(|it| it.is_open && it.nonce.is_none()).unwrap();
    store.decide_nonce(service_id, nonce + 9, &other.id).unwrap();
    decide_about_nonces(store, service_id, nonce);
}

/// Decides about a range, requests that a gap be filled, and moves the next nonce of the account forward and back.
fn decide_about_nonces(store: &Store, service_id: &ServiceId, nonce: u64) {
    let next = store.next_nonce(service_id).unwrap().unwrap();
    for (verb, first, last) in [
        (OperatorVerb::NoncesElsewhere, nonce, nonce + 9),
        (OperatorVerb::StartNonce, next + 9, next + 9),
        (OperatorVerb::StartNonce, next + 5, next + 5),
        (OperatorVerb::FillNonces, nonce + 4, nonce + 8),
    ] {
        decide(store, service_id, verb, [first, last]);
    }
}

fn decide(
    store: &Store,
    service_id: &ServiceId,
    verb: OperatorVerb,
    [first, last]: [u64; 2],
) -> ActionOutcome {
    let target = OperatorTarget::Nonces { service_id: service_id.clone(), first, last };
    let (reason, operator) = (None, Operator::program());
    store.act(&OperatorAction { verb, target, reason, operator, dry_run: false }).unwrap()
}

pub(super) fn record_on_postgres() -> Recording {
    let database = TestDatabase::create();
    let store = Store::open(&database.url().parse().unwrap(), StoreOptions::default()).unwrap();
    let worker = register_worker(&store);
    let accounts = load_withdrawals(&worker);
    // The accounts have no undecided nonces yet, and the plan for an empty table is different.
    execute(
        &store,
        "insert into new_services (service_id, signer)
         select service_id, decode(repeat('02', 33), 'hex') from services",
    );
    execute(&store, "vacuum analyze");
    let recorded = recording(|| process_withdrawals(&worker, &accounts));
    insta::assert_snapshot!("postgres", texts(&recorded));
    recorded
}

pub(super) fn record_on_sqlite() -> Recording {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/plans.db", dir.path().display()).parse().unwrap();
    let store = Store::open(&url, StoreOptions::default()).unwrap();
    let worker = register_worker(&store);
    let accounts = load_withdrawals(&worker);
    let recorded = recording(|| process_withdrawals(&worker, &accounts));
    insta::assert_snapshot!("sqlite", texts(&recorded));
    recorded
}
