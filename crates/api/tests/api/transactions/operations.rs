use grid_batch_core::batches::BatchState;
use grid_batch_core::operators::OperatorRequest;
use grid_batch_withdrawals::{
    CancelOutcome, RetryOutcome, SpeedUpOutcome, WithdrawalId, mocks::MockWithdrawalStore,
};
use serde_json::json;

use super::test_calls::{ID, REASON, details, path_of, server, store_with, withdrawal};
use crate::mock_stores::{assert_error, details_of, unavailable};

const OPERATIONS: [&str; 3] = ["cancel", "retry", "speed-up"];

fn is_of_the_test(id: &WithdrawalId, request: &OperatorRequest) -> bool {
    *id == ID && request.reason.as_deref() == Some("a test")
}

#[test]
fn cancellation_is_requested() {
    let mut store = store_with(details(ID, BatchState::New));
    let state = BatchState::New;
    store
        .expect_cancel_withdrawal()
        .times(1)
        .withf(is_of_the_test)
        .returning(move |_, _| Ok(CancelOutcome::Requested { state }));
    let response = server(store).post(&format!("{}/cancel", path_of(ID)), REASON);
    let json = response.json();
    assert_eq!((response.status, &json["id"]), (202, &json!(ID.to_string())), "{json}");
    assert_eq!(json["state"], "scheduled");
}

#[test]
fn higher_fees_are_requested() {
    let mut store = store_with(details(ID, BatchState::Pending));
    store
        .expect_speed_up_withdrawal()
        .times(1)
        .withf(is_of_the_test)
        .returning(|_, _| Ok(SpeedUpOutcome::Requested));
    let response = server(store).post(&format!("{}/speed-up", path_of(ID)), REASON);
    let json = response.json();
    assert_eq!((response.status, &json["id"]), (202, &json!(ID.to_string())), "{json}");
}

#[test]
fn failed_transaction_is_retried() {
    let mut store = store_with(details(ID, BatchState::New));
    store
        .expect_retry_withdrawal()
        .times(1)
        .withf(is_of_the_test)
        .returning(|_, _| Ok(RetryOutcome::Scheduled { generation: 2 }));
    let response = server(store).post(&format!("{}/retry", path_of(ID)), REASON);
    let json = response.json();
    assert_eq!((response.status, &json["id"]), (200, &json!(ID.to_string())), "{json}");
}

#[test]
fn operations_report_what_the_store_refuses() {
    let state = BatchState::Committed;
    let mut store = store_with(details(ID, state));
    store
        .expect_retry_withdrawal()
        .returning(move |_, _| Ok(RetryOutcome::NotFailed { state: state.into() }));
    store
        .expect_cancel_withdrawal()
        .returning(move |_, _| Ok(CancelOutcome::AlreadyEnded { state: state.into() }));
    store
        .expect_speed_up_withdrawal()
        .returning(move |_, _| Ok(SpeedUpOutcome::NotSent { state: state.into() }));
    let server = server(store);
    for (operation, message) in [
        ("retry", "only a failed transaction can be retried; this one is executed"),
        (
            "speed-up",
            "the fees of the transaction cannot be raised: it is executed, and does not wait to be mined",
        ),
        ("cancel", "the transaction has ended and cannot be cancelled: it is executed"),
    ] {
        let refused = server.post(&format!("{}/{operation}", path_of(ID)), REASON);
        assert_error(&refused, (409, 1028));
        assert_eq!(refused.message(), message);
    }
}

/// Nothing is written about what is of another kind, or unknown.
fn assert_not_found(store: MockWithdrawalStore, path: &str) {
    let mut store = store;
    store.expect_retry_withdrawal().never();
    store.expect_cancel_withdrawal().never();
    store.expect_speed_up_withdrawal().never();
    let server = server(store);
    for operation in OPERATIONS {
        assert_error(&server.post(&format!("{path}/{operation}"), REASON), (404, 1025));
    }
}

#[test]
fn operations_find_only_transactions() {
    assert_not_found(store_with(details_of(withdrawal(ID), BatchState::New)), &path_of(ID));
    let unknown = WithdrawalId::from_bytes([9; 16]);
    assert_not_found(store_with(details(ID, BatchState::New)), &path_of(unknown));
}

#[test]
fn operations_on_withdrawals_find_no_transaction() {
    let server = server(store_with(details(ID, BatchState::New)));
    for operation in ["cancel", "retry"] {
        assert_error(&server.post(&format!("/withdrawals/{ID}/{operation}"), REASON), (404, 1025));
    }
}

#[test]
fn operations_need_a_reason() {
    let server = server(store_with(details(ID, BatchState::New)));
    for operation in OPERATIONS {
        let path = format!("{}/{operation}", path_of(ID));
        assert_error(&server.post(&path, b"{}"), (400, 1023));
        assert_error(&server.post(&path, br#"{"force":true}"#), (400, 1022));
    }
}

#[test]
fn failed_operations_are_reported() {
    let mut store = store_with(details(ID, BatchState::Invalid));
    store.expect_retry_withdrawal().returning(|_, _| unavailable());
    store.expect_cancel_withdrawal().returning(|_, _| unavailable());
    store.expect_speed_up_withdrawal().returning(|_, _| unavailable());
    let server = server(store);
    for operation in OPERATIONS {
        let path = format!("{}/{operation}", path_of(ID));
        assert_error(&server.post(&path, REASON), (503, 1012));
    }
}
