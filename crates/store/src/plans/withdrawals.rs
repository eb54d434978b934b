//! What the databases make of the statements on a withdrawal's way.

use std::{collections::BTreeMap, ops::Range};

use grid_batch_core::{
    AttemptId, Change, Event, LedgerStatus, Outcome, ServiceId, TakenBatch, Timestamp,
};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_withdrawals::{
    BatchAttempt, NewSignedTransaction, NonceOutcome, Reward, RewardId, SigningStore, Withdrawal,
    WithdrawalId, WithdrawalKind,
};

use super::{SEEN, Seen, expect_no_scans_on_postgres, expect_no_scans_on_sqlite, texts, worker};
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
    }
}

fn schedule(store: &Store, numbers: Range<u64>) {
    let withdrawals: Vec<Withdrawal> = numbers.map(withdrawal).collect();
    store.schedule(&withdrawals).unwrap();
}

fn transaction(turn: &BatchAttempt, nonce: u64, max_fee: u128) -> NewSignedTransaction {
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(&turn.batch_id.as_bytes()[..16]);
    hash[16..].copy_from_slice(&max_fee.to_be_bytes());
    NewSignedTransaction { nonce, hash, bytes: vec![7; 120], max_fee, tip: 1, is_filler: false }
}

fn sign(store: &Store, taken: &TakenBatch) -> (BatchAttempt, u64) {
    let TakenBatch { attempt, epoch, batch_id, .. } = *taken;
    let attempt_id = AttemptId { attempt, epoch };
    let turn = BatchAttempt { service_id: taken.service_id.clone(), batch_id, attempt_id };
    let mut sign = |nonce| Ok(transaction(&turn, nonce, 1));
    let nonce = store.assign_nonce(&turn, 0, &mut sign).unwrap().unwrap().signed.nonce;
    (turn, nonce)
}

/// 2,000 withdrawals of 100 accounts, of which 200 have ended.
pub(super) fn load_withdrawals(claims: &ClaimStore) -> Vec<ServiceId> {
    let store = claims.store();
    schedule(store, 0..2_000);
    let accounts: Vec<ServiceId> = (0..100).map(|number| withdrawal(number).service_id).collect();
    claims.take_services(&accounts).unwrap();
    for round in 0..2 {
        let taken = claims.take_round(&accounts).unwrap();
        let mut changes = Vec::new();
        for taken in &taken {
            let (turn, nonce) = sign(store, taken);
            let withdrawal_id = round.to_string();
            let spent = NonceOutcome::Withdrawn { withdrawal_id };
            store.close_nonce(&turn.service_id, nonce, &spent).unwrap();
            let accepted = Event::Outcome { attempt: 1, outcome: Outcome::Accepted };
            for event in [accepted, Event::status(LedgerStatus::Committed)] {
                changes.push(Change::new(turn.service_id.clone(), turn.batch_id, event));
            }
        }
        store.record(&changes).unwrap();
    }
    accounts
}

/// A withdrawal is scheduled, signed for, cancelled, refused and tried anew, and what was run for it
/// is told.
fn look_at_withdrawals(claims: &ClaimStore, accounts: &[ServiceId]) -> BTreeMap<String, Seen> {
    let store = claims.store();
    SEEN.set(Some(BTreeMap::new()));
    let reward = Reward {
        id: RewardId::from_bytes([1; 16]),
        pool: "pool 1".to_owned(),
        amount: "1".to_owned(),
        once_per_member: true,
        created_at: Timestamp::from_micros(0),
    };
    store.add_reward(&reward).unwrap().unwrap();
    schedule(store, 2_000..2_100);

    let taken = claims.take_round(&accounts[..1]).unwrap().remove(0);
    store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap();
    let (turn, nonce) = sign(store, &taken);
    let dearer = transaction(&turn, nonce, 2);
    store.replace_transaction(&turn, dearer.clone()).unwrap().unwrap();
    store.mark_sent(&dearer.hash, None).unwrap();
    store.next_nonce(&turn.service_id).unwrap().unwrap();
    let mut fill =
        |nonce| Ok(NewSignedTransaction { is_filler: true, ..transaction(&turn, nonce, 3) });
    assert_eq!(store.fill_nonce(&turn, nonce - 1, &mut fill).unwrap(), None);
    store.note(&turn.service_id, nonce, Some("mined")).unwrap();
    store.record_foreign_use(&turn.service_id, nonce, &[1; 32]).unwrap();
    assert_eq!(store.transactions_from(&turn.service_id, nonce).unwrap(), [dearer]);

    let id = store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap().withdrawal_id;
    store.cancel_withdrawal(&id).unwrap();
    store.close_nonce(&turn.service_id, nonce, &NonceOutcome::Cancelled).unwrap();
    let event = Event::Outcome { attempt: 1, outcome: Outcome::Rejected };
    store.record(&[Change::new(taken.service_id, taken.batch_id, event)]).unwrap();
    store.retry_withdrawal(&id).unwrap();
    SEEN.take().unwrap()
}

#[test]
fn on_postgres_nothing_is_scanned() {
    let database = TestDatabase::create();
    let store = Store::open(&database.url().parse().unwrap(), StoreOptions::default()).unwrap();
    let worker = worker(&store);
    let accounts = load_withdrawals(&worker);
    store.pools.write().unwrap().batch_execute("vacuum analyze").unwrap();
    let seen = look_at_withdrawals(&worker, &accounts);
    insta::assert_snapshot!("postgres", texts(&seen));
    expect_no_scans_on_postgres(seen);
}

#[test]
fn on_sqlite_nothing_is_scanned() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/plans.db", dir.path().display()).parse().unwrap();
    let store = Store::open(&url, StoreOptions::default()).unwrap();
    let worker = worker(&store);
    let accounts = load_withdrawals(&worker);
    let seen = look_at_withdrawals(&worker, &accounts);
    insta::assert_snapshot!("sqlite", texts(&seen));
    expect_no_scans_on_sqlite(seen);
}
