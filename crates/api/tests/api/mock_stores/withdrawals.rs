use grid_batch_core::batches::{AddOutcome, BatchState};
use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_withdrawals::{
    CancelOutcome, Payer, PaymentLimitError, RetryOutcome, Reward, RewardConflict, RewardId,
    ScheduleOutcome, Withdrawal, WithdrawalConflict, WithdrawalDetails, WithdrawalId,
    WithdrawalKind, WithdrawalRules,
    mocks::{MockWithdrawalRules, MockWithdrawalStore},
};

use super::{MockServer, assert_error, builder_with_withdrawals, details_of, unavailable};
use crate::test_server::service;

const WITHDRAWAL: &[u8] = br#"{"pool":"p","beneficiary":"b","amount":"1","idempotency_key":"key"}"#;
const REASON: &[u8] = br#"{"reason":"a test"}"#;
const REWARD: &[u8] = br#"{"pool":"p","amount":"1","idempotency_key":"key"}"#;

const STORED: ScheduleOutcome =
    ScheduleOutcome::Stored { created_at: Timestamp::from_micros(5_000_000), ahead: 7 };

fn server(store: MockWithdrawalStore) -> MockServer {
    let mut rules = MockWithdrawalRules::new();
    rules.expect_pool().returning(|pool| Ok((pool.to_owned(), service("admin"))));
    rules.expect_beneficiary().returning(|beneficiary| Ok(beneficiary.to_owned()));
    rules.expect_amount().returning(|amount| Ok(amount.to_owned()));
    rules.expect_may_be_paid().returning(|_, _| Ok(()));
    server_with_rules(store, rules)
}

fn server_with_rules(
    store: MockWithdrawalStore,
    rules: impl WithdrawalRules + 'static,
) -> MockServer {
    MockServer::new(builder_with_withdrawals(store, rules))
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
        idempotency_key: None,
        call: None,
        trace: None,
    }
}

fn details(id: WithdrawalId, state: BatchState) -> WithdrawalDetails {
    details_of(withdrawal(id), state)
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
    store.expect_schedule().returning(|_| Ok(vec![Ok(STORED)]));
    let server = server(store);
    let failed = server.post("/withdrawals", WITHDRAWAL);
    assert_error(&failed, (503, 1012));
    let id = server.post("/withdrawals", WITHDRAWAL).scheduled_id();
    assert!(failed.message().contains(&format!("/withdrawals/{id}")), "{}", failed.message());
}

#[test]
fn new_withdrawal_is_answered_without_reading() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(|_| Ok(vec![Ok(STORED)]));
    store.expect_withdrawal().never();
    let json = server(store).post("/withdrawals", WITHDRAWAL).json();
    assert_eq!(json["waits_for"], "7 earlier withdrawals of its gas admin");
    assert_eq!(json["created_at"], "1970-01-01T00:00:05.000000Z");
}

#[test]
fn known_withdrawal_is_answered_with_its_present_state() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(|_| Ok(vec![Ok(ScheduleOutcome::AlreadyStored)]));
    store.expect_withdrawal().returning(|id| Ok(Some(details(*id, BatchState::Pending))));
    let json = server(store).post("/withdrawals", WITHDRAWAL).json();
    assert_eq!(json["state"], "pending");
}

#[test]
fn full_queue_of_a_gas_admin_is_reported_with_its_limit() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(|_| {
        let service_id = service("admin");
        Ok(vec![Err(WithdrawalConflict::QueueFull { service_id, open: 5, limit: 5 })])
    });
    let refused = server(store).post("/withdrawals", WITHDRAWAL);
    assert_error(&refused, (429, 1018));
    assert_eq!(refused.header("retry-after"), Some("10"));
    assert!(
        refused.message().contains("admin has 5 open withdrawals and transactions"),
        "{}",
        refused.message()
    );
}

#[test]
fn locked_gas_admin_is_reported_as_unavailable() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(|_| {
        let service_id = service("admin");
        Ok(vec![Err(WithdrawalConflict::ServiceLocked { service_id })])
    });
    assert_error(&server(store).post("/withdrawals", WITHDRAWAL), (503, 1012));
}

#[test]
fn known_withdrawal_that_cannot_be_read_is_in_doubt() {
    for read in [|| unavailable(), || Ok(None)] {
        let mut store = MockWithdrawalStore::new();
        store.expect_schedule().returning(|_| Ok(vec![Ok(ScheduleOutcome::AlreadyStored)]));
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
        Ok(vec![Err(WithdrawalConflict::OtherTerms { stored })])
    });
    let response = server(store).post("/withdrawals", WITHDRAWAL);
    assert_error(&response, (409, 1026));
    assert!(response.json()["error"]["link"].is_string(), "{}", response.json());
}

fn day_limit() -> PaymentLimitError {
    let amount = |text: &str| text.parse().unwrap();
    let (payer, limit, left) = (Payer::Pool("p".to_owned()), amount("9"), amount("3"));
    PaymentLimitError::Day { payer, amount: amount("4"), limit, left }
}

#[test]
fn limit_of_a_day_is_reported_with_what_is_left() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(|_| Ok(vec![Err(day_limit().into())]));
    store.expect_withdrawal().returning(|id| Ok(Some(details(*id, BatchState::Invalid))));
    store.expect_retry_withdrawal().returning(|_, _| Ok(RetryOutcome::PaymentLimit(day_limit())));
    let server = server(store);
    let retry = format!("{}/retry", withdrawal_path());
    for response in [server.post("/withdrawals", WITHDRAWAL), server.post(&retry, REASON)] {
        assert_error(&response, (429, 1042));
        assert!(response.message().contains("has 3 left of its limit"), "{}", response.message());
        assert_eq!(response.header("retry-after"), Some("600"));
    }
}

#[test]
fn amount_above_the_limit_is_reported() {
    let amount = |text: &str| text.parse().unwrap();
    let (pool, limit) = ("p".to_owned(), amount("9"));
    let error = PaymentLimitError::Payment { pool, amount: amount("10"), limit };
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(move |_| Ok(vec![Err(error.clone().into())]));
    let response = server(store).post("/withdrawals", WITHDRAWAL);
    assert_error(&response, (403, 1041));
    assert!(response.message().contains("limit of 9 "), "{}", response.message());
}

/// Pools that may pay no beneficiary.
#[derive(Debug)]
struct ClosedPools;

impl WithdrawalRules for ClosedPools {
    fn pool(&self, text: &str) -> Result<(String, ServiceId), String> {
        Ok((text.to_owned(), service("admin")))
    }

    fn beneficiary(&self, text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }

    fn pool_address(&self, text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }

    fn may_be_paid(&self, _: &str, beneficiary: &str) -> Result<(), String> {
        Err(format!("{beneficiary} is not listed"))
    }

    fn amount(&self, text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }
}

#[test]
fn beneficiary_is_refused_unless_it_is_scheduled_already() {
    let mut store = MockWithdrawalStore::new();
    store.expect_withdrawal().times(1).returning(|_| Ok(None));
    store.expect_schedule().times(1).returning(|_| Ok(vec![Ok(ScheduleOutcome::AlreadyStored)]));
    store.expect_withdrawal().returning(|id| Ok(Some(details(*id, BatchState::New))));
    let server = server_with_rules(store, ClosedPools);
    let refused = server.post("/withdrawals", WITHDRAWAL);
    assert_error(&refused, (403, 1040));
    assert!(refused.message().contains("b is not listed"), "{}", refused.message());
    server.post("/withdrawals", WITHDRAWAL).scheduled_id();
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
    store.expect_withdrawal().returning(|id| Ok(Some(details(*id, BatchState::Invalid))));
    store.expect_retry_withdrawal().returning(|_, _| unavailable());
    store.expect_cancel_withdrawal().returning(|_, _| unavailable());
    let server = server(store);
    for operation in ["retry", "cancel"] {
        let path = format!("{}/{operation}", withdrawal_path());
        assert_error(&server.post(&path, REASON), (503, 1012));
    }
}

#[test]
fn operations_report_what_the_store_refuses() {
    let mut store = MockWithdrawalStore::new();
    let state = BatchState::Committed;
    store.expect_withdrawal().returning(move |id| Ok(Some(details(*id, state))));
    store.expect_retry_withdrawal().times(1).returning(|_, _| Ok(RetryOutcome::NotFound));
    store
        .expect_retry_withdrawal()
        .returning(move |_, _| Ok(RetryOutcome::NotFailed { state: state.into() }));
    store.expect_cancel_withdrawal().times(1).returning(|_, _| Ok(CancelOutcome::NotFound));
    store
        .expect_cancel_withdrawal()
        .returning(move |_, _| Ok(CancelOutcome::AlreadyEnded { state: state.into() }));
    let server = server(store);
    for operation in ["retry", "cancel"] {
        let path = format!("{}/{operation}", withdrawal_path());
        assert_error(&server.post(&path, REASON), (404, 1025));
        let refused = server.post(&path, REASON);
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
