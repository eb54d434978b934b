use std::{sync::Arc, time::Duration};

use diesel::connection::SimpleConnection;
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::{WithdrawalId, WithdrawalRules};
use serde_json::json;

use super::test_pools::{JSON, server_with_pools, server_with_pools_and, with_pools};
use crate::test_server::TestServer;

#[test]
fn failed_write_is_reported_with_the_id() {
    let server = TestServer::with_lock_timeout(Duration::from_millis(100), with_pools);
    let key = ["idempotency-key: k"];
    let schedule = || server.post_withdrawal(&key, "pool1", "5");
    let lock = server.lock_database();
    let response = schedule();
    assert_eq!(response.error(), (503, 1012));
    let reward = json!({ "pool": "pool1", "amount": "5" });
    assert_eq!(server.post_json("/rewards", &[], &reward).error(), (503, 1012));
    drop(lock);
    let id = schedule().scheduled_id();
    assert!(response.message().contains(&id.to_string()), "{}", response.message());
    let lock = server.lock_database();
    let cancel = server.client().request(
        "POST",
        &format!("/withdrawals/{id}/cancel"),
        &[JSON],
        br#"{"reason": "a test"}"#,
    );
    assert_eq!(cancel.error(), (503, 1012));
    drop(lock);
}

#[test]
fn failed_read_is_reported_and_later_succeeds() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    let mut connection = server.connect_to_database();
    connection.batch_execute("alter table withdrawals rename to renamed").unwrap();
    for path in ["/withdrawals", &format!("/withdrawals/{id}")] {
        assert_eq!(server.get(path).error(), (503, 1013));
    }
    connection.batch_execute("alter table renamed rename to withdrawals").unwrap();
    assert_eq!(server.withdrawal(&id)["state"], "scheduled");
}

#[derive(Debug)]
struct PanickingRules;

impl WithdrawalRules for PanickingRules {
    fn pool(&self, _: &str) -> Result<(String, ServiceId), String> {
        panic!("test panic")
    }

    fn pool_address(&self, _: &str) -> Result<String, String> {
        panic!("test panic")
    }

    fn beneficiary(&self, _: &str) -> Result<String, String> {
        Ok("member1".to_owned())
    }

    fn amount(&self, _: &str) -> Result<String, String> {
        Ok("1".to_owned())
    }
}

#[test]
fn panicking_callbacks_fail_at_most_one_request() {
    let server =
        server_with_pools_and(|builder| builder.with_stored_callback(|_| panic!("test panic")));
    let id: WithdrawalId = server.withdraw("5");
    assert_eq!(server.withdrawal(&id)["state"], "scheduled");

    let server = TestServer::with(|builder, store| {
        builder.with_withdrawals(store.clone(), Arc::new(PanickingRules))
    });
    let response = server.post_withdrawal(&[], "pool1", "5");
    assert_eq!(response.error(), (500, 1000));
    assert_eq!(server.get("/health").status, 200);
}
