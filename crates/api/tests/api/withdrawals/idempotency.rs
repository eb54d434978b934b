use std::{collections::HashSet, thread};

use grid_batch_withdrawals::WithdrawalId;
use serde_json::{Value, json};

use super::test_pools::{ADMIN, server_with_pools, withdrawal_request};
use crate::test_server::service;

fn with_key(mut body: Value, key: &str) -> Value {
    body["idempotency_key"] = key.into();
    body
}

#[test]
fn same_request_returns_the_stored_withdrawal() {
    let server = server_with_pools();
    let header = ["Idempotency-Key: order 17"];
    let first = server.post_withdrawal(&header, "pool1", "5").scheduled_id();
    server.commit_next("9");

    let again = server.post_withdrawal(&header, "POOL1", "005");
    assert_eq!(again.scheduled_id(), first);
    assert_eq!(again.json()["state"], "withdrawn");
    let in_body = with_key(withdrawal_request("pool1", "5"), "order 17");
    assert_eq!(server.post_json("/withdrawals", &[], &in_body).scheduled_id(), first);
    assert_eq!(server.post_json("/withdrawals", &header, &in_body).scheduled_id(), first);
}

#[test]
fn repeated_request_keeps_the_trace_of_the_first() {
    let server = server_with_pools();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let first = format!("traceparent: {parent}");
    let second = first.replace("4bf9", "4bf8");
    for trace in [&first, &second] {
        server.post_withdrawal(&["idempotency-key: k", trace], "pool1", "5").scheduled_id();
    }
    assert_eq!(server.take().trace.unwrap().traceparent(), parent);
}

#[test]
fn same_key_with_other_contents_is_a_conflict() {
    let server = server_with_pools();
    let header = ["idempotency-key: k"];
    let first = server.post_withdrawal(&header, "pool1", "5").scheduled_id();
    let other = server.post_withdrawal(&header, "pool1", "6");
    assert_eq!(other.error(), (409, 1026));
    let message = other.message();
    for part in ["5", "pool1", "member1", &first.to_string()] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(other.json()["error"]["link"], format!("http://grid.test/withdrawals/{first}"));
    assert_eq!(server.get("/withdrawals").json()["data"].as_array().unwrap().len(), 1);
}

#[test]
fn other_key_or_other_pool_is_another_withdrawal() {
    let server = server_with_pools();
    let schedule = |pool, key| {
        server
            .post_json("/withdrawals", &[], &with_key(withdrawal_request(pool, "5"), key))
            .scheduled_id()
    };
    let ids = [
        schedule("pool1", "a"),
        schedule("pool1", "A"),
        schedule("pool2", "a"),
        schedule("pool1", "é"),
    ];
    assert_eq!(HashSet::from(ids).len(), 4);
}

#[test]
fn withdrawal_and_reward_may_have_the_same_key() {
    let server = server_with_pools();
    let reward = json!({ "pool": "pool1", "amount": "5", "idempotency_key": "k" });
    let reward = server.post_json("/rewards", &[], &reward).json()["id"].clone();
    let first = server.post_withdrawal(&["idempotency-key: k"], "pool1", "5");
    assert_ne!(first.json()["id"], reward);
}

#[test]
fn invalid_keys_are_refused() {
    let server = server_with_pools();
    let long = "k".repeat(256);
    for key in ["", "a\nb", &long] {
        let response =
            server.post_json("/withdrawals", &[], &with_key(withdrawal_request("pool1", "5"), key));
        assert_eq!(response.error(), (400, 1024), "{key:?}");
    }
    for headers in [
        &["idempotency-key: a", "idempotency-key: b"][..],
        &["idempotency-key:"],
        &[&format!("idempotency-key: {long}")],
    ] {
        let response = server.post_withdrawal(headers, "pool1", "5");
        assert_eq!(response.error(), (400, 1024), "{headers:?}");
    }
    let both = with_key(withdrawal_request("pool1", "5"), "a");
    let response = server.post_json("/withdrawals", &["idempotency-key: b"], &both);
    assert_eq!(response.error(), (400, 1024));
    assert!(response.message().contains("two different"), "{}", response.message());
    let number =
        json!({ "pool": "pool1", "beneficiary": "member1", "amount": "5", "idempotency_key": 5 });
    assert_eq!(server.post_json("/withdrawals", &[], &number).error(), (400, 1023));
}

#[test]
fn concurrent_requests_with_one_key_get_one_withdrawal() {
    let server = server_with_pools();
    let schedule = || -> WithdrawalId {
        server.post_withdrawal(&["idempotency-key: k"], "pool1", "5").scheduled_id()
    };
    let ids: HashSet<WithdrawalId> = thread::scope(|scope| {
        let threads: Vec<_> = (0..24).map(|_| scope.spawn(schedule)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    assert_eq!(server.store.depth(&service(ADMIN)).unwrap(), 1);
}
