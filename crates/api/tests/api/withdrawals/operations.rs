use std::{sync::mpsc, thread};

use grid_batch_withdrawals::WithdrawalId;

use super::test_pools::{ADMIN, server_with_pools, server_with_pools_and};
use crate::{
    client::Response,
    test_server::{TestServer, service},
};

fn post_operation(server: &TestServer, id: &WithdrawalId, operation: &str) -> Response {
    server.client().request("POST", &format!("/withdrawals/{id}/{operation}"), &[], b"")
}

#[test]
fn failed_withdrawal_is_retried() {
    let (sender, notified) = mpsc::channel();
    let server = server_with_pools_and(|builder| {
        builder.with_stored_callback(move |services| sender.send(services.to_vec()).unwrap())
    });
    let id = server.withdraw("5");
    server.fail_next("NOT_OWNER");
    notified.try_recv().unwrap();
    let response = post_operation(&server, &id, "retry");
    let json = response.json();
    assert_eq!(response.status, 200, "{json}");
    assert_eq!((&json["state"], &json["generation"]), (&"scheduled".into(), &2.into()));
    assert!(json.get("fail_reason").is_none(), "{json}");
    assert_eq!(notified.try_recv().unwrap(), [service(ADMIN)]);
    server.commit_next("7");
    assert_eq!(server.withdrawal(&id)["withdrawal_id"], "7");
}

#[test]
fn only_failed_withdrawals_are_retried() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    let response = post_operation(&server, &id, "retry");
    assert_eq!(response.error(), (409, 1028));
    assert!(response.message().contains("is scheduled"), "{}", response.message());
    server.commit_next("7");
    let response = post_operation(&server, &id, "retry");
    assert_eq!(response.error(), (409, 1028));
    assert!(response.message().contains("is withdrawn"), "{}", response.message());
}

#[test]
fn concurrent_retries_retry_once() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    server.fail_next("NOT_OWNER");
    let statuses: Vec<u16> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..16).map(|_| scope.spawn(|| post_operation(&server, &id, "retry").status)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(server.withdrawal(&id)["generation"], 2);
}

#[test]
fn cancellation_may_be_requested_repeatedly() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    for _ in 0..2 {
        let response = post_operation(&server, &id, "cancel");
        assert_eq!(response.status, 202);
        assert_eq!(response.json()["state"], "scheduled");
        assert!(response.json()["cancelled_at"].is_string(), "{}", response.json());
    }
}

#[test]
fn ended_withdrawal_is_not_cancelled() {
    let server = server_with_pools();
    let [withdrawn, failed] = ["1", "2"].map(|amount| server.withdraw(amount));
    server.commit_next("7");
    server.fail_next("NOT_OWNER");
    for (id, state) in [(withdrawn, "withdrawn"), (failed, "failed")] {
        let response = post_operation(&server, &id, "cancel");
        assert_eq!(response.error(), (409, 1028));
        assert!(response.message().contains(state), "{}", response.message());
    }
}

#[test]
fn operations_need_a_withdrawal_and_no_body() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    let unknown = WithdrawalId::from_bytes([0; 16]);
    for operation in ["retry", "cancel"] {
        assert_eq!(post_operation(&server, &unknown, operation).error(), (404, 1025));
        let path = format!("/withdrawals/{id}/{operation}");
        let post = |body: &[u8]| server.client().request("POST", &path, &[], body);
        assert_eq!(post(b"invalid").error(), (400, 1022));
        assert_eq!(post(b"{\"force\":true}").error(), (400, 1022));
        assert!([202, 409].contains(&post(b"{}").status));
        let invalid_id =
            server.client().request("POST", &format!("/withdrawals/zz/{operation}"), &[], b"");
        assert_eq!(invalid_id.error(), (400, 60));
    }
}
