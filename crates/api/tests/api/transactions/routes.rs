use std::sync::Arc;

use grid_batch_api::ApiBuilder;
use grid_batch_core::mocks::{MockBatchQueryStore, MockIntakeStore};
use grid_batch_protocol::TransactFormat;
use grid_batch_withdrawals::mocks::{MockCallRules, MockWithdrawalRules, MockWithdrawalStore};

use super::test_calls::{ID, PATH, REASON, path_of, server};
use crate::mock_stores::{MockServer, assert_error, builder_with_withdrawals};

fn assert_serves_no_transactions(builder: ApiBuilder) {
    let server = MockServer::new(builder);
    let cancel = format!("{}/cancel", path_of(ID));
    for response in [
        server.get(PATH),
        server.get(&path_of(ID)),
        server.post(PATH, br#"{"account":"payer"}"#),
        server.post(&cancel, REASON),
    ] {
        assert_error(&response, (404, 1020));
        assert!(response.message().contains("no accounts"), "{}", response.message());
        assert_eq!(response.header("content-type"), Some("application/problem+json"));
    }
}

#[test]
fn transactions_need_rules_for_calls() {
    let rules = MockWithdrawalRules::new();
    assert_serves_no_transactions(builder_with_withdrawals(MockWithdrawalStore::new(), rules));
}

#[test]
fn server_of_batches_serves_no_transactions() {
    let batches = Arc::new(MockBatchQueryStore::new());
    let builder = ApiBuilder::new(Arc::new(MockIntakeStore::new()), batches);
    let builder = builder.with_format(Arc::new(TransactFormat::default()));
    assert_serves_no_transactions(builder.with_calls(Arc::new(MockCallRules::new())));
}

#[test]
fn unknown_paths_and_methods_are_refused_with_a_code() {
    let server = server(MockWithdrawalStore::new());
    for path in [format!("{PATH}/a/b/c"), format!("{}/undo", path_of(ID))] {
        assert_error(&server.get(&path), (404, 1001));
    }
    assert_error(&server.get(&format!("{}/retry", path_of(ID))), (405, 1002));
    assert_error(&server.post(&path_of(ID), REASON), (405, 1002));
}
