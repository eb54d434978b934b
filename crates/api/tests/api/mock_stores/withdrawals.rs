use std::sync::Arc;

use grid_batch_api::ApiBuilder;
use grid_batch_core::{
    AddOutcome, BatchState, Timestamp,
    mocks::{MockBatchQueryStore, MockIntakeStore},
};
use grid_batch_withdrawals::{
    CancelOutcome, RetryOutcome, Reward, RewardConflict, RewardId, Withdrawal, WithdrawalConflict,
    WithdrawalDetails, WithdrawalId, WithdrawalKind,
    mocks::{MockWithdrawalRules, MockWithdrawalStore},
};

use super::{MockServer, assert_error, stored_batch, unavailable};
use crate::test_server::service;

const WITHDRAWAL: &[u8] = br#"{"pool":"p","beneficiary":"b","amount":"1","idempotency_key":"key"}"#;
const REWARD: &[u8] = br#"{"pool":"p","amount":"1","idempotency_key":"key"}"#;

fn server(store: MockWithdrawalStore) -> MockServer {
    let mut rules = MockWithdrawalRules::new();
    rules.expect_pool().returning(|pool| Ok((pool.to_owned(), service("admin"))));
    rules.expect_beneficiary().returning(|beneficiary| Ok(beneficiary.to_owned()));
    rules.expect_amount().returning(|amount| Ok(amount.to_owned()));
    server_with_rules(store, rules)
}

fn server_with_rules(store: MockWithdrawalStore, rules: MockWithdrawalRules) -> MockServer {
    let batches = Arc::new(MockBatchQueryStore::new());
    let builder = ApiBuilder::new(Arc::new(MockIntakeStore::new()), batches);
    MockServer::new(builder.with_withdrawals(Arc::new(store), Arc::new(rules)))
}

fn withdrawal(id: WithdrawalId) -> Withdrawal {
    Withdrawal {
        id,
        service_id: service("admin"),
        kind: WithdrawalKind::Propose,
        reward_id: None,
        pool: "p".to_owned(),
        beneficiary: "b".to_owned(),
        amount: "1".to_owned(),
    }
}

fn details(id: WithdrawalId, state: BatchState) -> WithdrawalDetails {
    WithdrawalDetails {
        withdrawal: withdrawal(id),
        created_at: Timestamp::from_micros(0),
        generation: 1,
        cancelled_at: None,
        batch: stored_batch(id.batch_id(1), state),
        ahead: Some(0),
        nonce: None,
        fail_reason: None,
    }
}

fn reward(id: RewardId) -> Reward {
    Reward {
        id,
        pool: "p".to_owned(),
        amount: "1".to_owned(),
        once_per_member: true,
        created_at: Timestamp::from_micros(0),
    }
}

fn withdrawal_path() -> String {
    format!("/withdrawals/{}", WithdrawalId::from_bytes([1; 16]))
}

#[test]
fn failed_schedule_names_the_withdrawal_to_check() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().times(1).returning(|_| unavailable());
    store.expect_schedule().returning(|_| Ok(vec![Ok(AddOutcome::Stored)]));
    store.expect_withdrawal().returning(|id| Ok(Some(details(*id, BatchState::New))));
    let server = server(store);
    let failed = server.post("/withdrawals", WITHDRAWAL);
    assert_error(&failed, (503, 1012));
    let id = server.post("/withdrawals", WITHDRAWAL).scheduled_id();
    assert!(failed.message().contains(&format!("/withdrawals/{id}")), "{}", failed.message());
}

#[test]
fn scheduled_withdrawal_that_cannot_be_read_is_in_doubt() {
    for read in [|| unavailable(), || Ok(None)] {
        let mut store = MockWithdrawalStore::new();
        store.expect_schedule().returning(|_| Ok(vec![Ok(AddOutcome::Stored)]));
        store.expect_withdrawal().returning(move |_| read());
        assert_error(&server(store).post("/withdrawals", WITHDRAWAL), (503, 1012));
    }
}

#[test]
fn missing_result_of_the_store_is_an_error() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(|_| Ok(vec![]));
    assert_error(&server(store).post("/withdrawals", WITHDRAWAL), (503, 1012));
}

#[test]
fn conflict_of_the_store_is_reported_with_a_link() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(|withdrawals| {
        let stored = Box::new(Withdrawal { amount: "2".to_owned(), ..withdrawals[0].clone() });
        Ok(vec![Err(WithdrawalConflict { stored })])
    });
    let response = server(store).post("/withdrawals", WITHDRAWAL);
    assert_error(&response, (409, 1026));
    assert!(response.json()["error"]["link"].is_string(), "{}", response.json());
}

#[test]
fn failed_reads_are_reported() {
    let mut store = MockWithdrawalStore::new();
    store.expect_withdrawal().returning(|_| unavailable());
    store.expect_withdrawals().returning(|_, _, _| unavailable());
    store.expect_reward().returning(|_| unavailable());
    let server = server(store);
    assert_error(&server.get(&withdrawal_path()), (503, 1013));
    assert_error(&server.get("/withdrawals"), (503, 1013));
    let reward = format!("/rewards/{}", RewardId::from_bytes([1; 16]));
    assert_error(&server.get(&reward), (503, 1013));
    let claim = server.post(&format!("{reward}/claim"), br#"{"beneficiary":"b"}"#);
    assert_error(&claim, (503, 1013));
}

#[test]
fn failed_operations_are_reported() {
    let mut store = MockWithdrawalStore::new();
    store.expect_retry_withdrawal().returning(|_| unavailable());
    store.expect_cancel_withdrawal().returning(|_| unavailable());
    let server = server(store);
    for operation in ["retry", "cancel"] {
        let path = format!("{}/{operation}", withdrawal_path());
        assert_error(&server.post(&path, b""), (503, 1012));
    }
}

#[test]
fn operations_report_what_the_store_refuses() {
    let mut store = MockWithdrawalStore::new();
    let state = BatchState::Committed;
    store.expect_retry_withdrawal().times(1).returning(|_| Ok(RetryOutcome::NotFound));
    store.expect_retry_withdrawal().returning(move |_| Ok(RetryOutcome::NotFailed { state }));
    store.expect_cancel_withdrawal().times(1).returning(|_| Ok(CancelOutcome::NotFound));
    store.expect_cancel_withdrawal().returning(move |_| Ok(CancelOutcome::AlreadyEnded { state }));
    let server = server(store);
    for operation in ["retry", "cancel"] {
        let path = format!("{}/{operation}", withdrawal_path());
        assert_error(&server.post(&path, b""), (404, 1025));
        let refused = server.post(&path, b"");
        assert_error(&refused, (409, 1028));
        assert!(refused.message().contains("withdrawn"), "{}", refused.message());
    }
}

#[test]
fn failed_creation_of_a_reward_is_reported() {
    let mut store = MockWithdrawalStore::new();
    store.expect_add_reward().times(1).returning(|_| unavailable());
    store.expect_add_reward().times(1).returning(|_| Ok(Ok(AddOutcome::Stored)));
    store.expect_reward().returning(|_| unavailable());
    store.expect_add_reward().returning(|new| {
        Ok(Err(RewardConflict { stored: Reward { amount: "2".to_owned(), ..reward(new.id) } }))
    });
    let server = server(store);
    assert_error(&server.post("/rewards", REWARD), (503, 1012));
    assert_error(&server.post("/rewards", REWARD), (503, 1012));
    assert_error(&server.post("/rewards", REWARD), (409, 1026));
}

#[test]
fn refusal_of_the_rules_is_reported_with_its_reason() {
    let mut rules = MockWithdrawalRules::new();
    rules.expect_pool().returning(|_| Err("this pool is closed".to_owned()));
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().never();
    let response = server_with_rules(store, rules).post("/withdrawals", WITHDRAWAL);
    assert_error(&response, (400, 1023));
    assert!(response.message().contains("this pool is closed"), "{}", response.message());
}
