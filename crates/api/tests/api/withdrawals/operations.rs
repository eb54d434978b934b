use std::{sync::mpsc, thread};

use grid_batch_core::Timestamp;
use grid_batch_core::batches::Event;
use grid_batch_core::ledger::Outcome;
use grid_batch_withdrawals::WithdrawalId;

use super::test_pools::{ADMIN, JSON, server_with_pools, server_with_pools_and};
use crate::{
    client::Response,
    test_server::{TestServer, service},
};

fn post_operation(server: &TestServer, id: &WithdrawalId, operation: &str) -> Response {
    let path = format!("/withdrawals/{id}/{operation}");
    server.client().request("POST", &path, &[JSON], br#"{"reason": "a test"}"#)
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
fn failed_withdrawals_are_retried_together() {
    let (sender, notified) = mpsc::channel();
    let server = server_with_pools_and(|builder| {
        builder.with_stored_callback(move |services| sender.send(services.to_vec()).unwrap())
    });
    let ids = ["5", "6", "7"].map(|amount| server.withdraw(amount));
    for reason in
        ["there is no contract at the pool", "NOT_OWNER", "there is no contract at the pool"]
    {
        server.fail_next(reason);
    }
    notified.try_iter().for_each(drop);
    let post = |body: &str| {
        server.client().request("POST", "/withdrawals/retry", &[JSON], body.as_bytes())
    };
    let filter = r#""reason": "a test", "pool": "pool1", "reason_contains": "no contract""#;
    let retried = |response: Response| {
        assert_eq!(response.status, 200, "{response:?}");
        let json = response.json();
        assert_eq!(json["has_more"], false, "{json}");
        let data = json["data"].as_array().unwrap().iter();
        data.map(|failed| failed["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let expected = [ids[0].to_string(), ids[2].to_string()];
    assert_eq!(retried(post(&format!(r#"{{{filter}, "dry_run": true}}"#))), expected);
    assert_eq!(server.withdrawal(&ids[0])["state"], "failed");
    assert_eq!(retried(post(&format!("{{{filter}}}"))), expected);
    assert_eq!(notified.try_recv().unwrap(), [service(ADMIN)]);
    let states = ids.map(|id| server.withdrawal(&id)["state"].clone());
    assert_eq!(states, ["scheduled", "failed", "scheduled"]);
    assert!(
        retried(post(r#"{"reason": "a test", "failed_since": "2999-01-01T00:00:00Z"}"#)).is_empty()
    );
}

#[test]
fn retry_of_everything_has_to_be_narrowed() {
    let server = server_with_pools();
    for (body, part) in [
        ("{}", "one of pool, service_id, failed_since and reason_contains"),
        (r#"{"failed_since": "yesterday"}"#, "it must be a time such as"),
        (r#"{"pool": "x"}"#, "pool"),
        (r#"{"pool": "pool1"}"#, "reason"),
    ] {
        let response =
            server.client().request("POST", "/withdrawals/retry", &[JSON], body.as_bytes());
        assert_eq!(response.status, 400, "{response:?}");
        assert!(response.message().contains(part), "{}", response.message());
    }
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
fn cancelled_refused_withdrawal_is_tried_at_once() {
    let (sender, notified) = mpsc::channel();
    let server = server_with_pools_and(|builder| {
        builder.with_stored_callback(move |services| sender.send(services.to_vec()).unwrap())
    });
    let id = server.withdraw("5");
    notified.try_recv().unwrap();
    let taken = server.take();
    let refused = Event::Outcome { attempt: taken.attempt, outcome: Outcome::RefusedBatch };
    server.record(&taken, refused, |change| {
        change.retry_at = Some(Timestamp::from_micros(i64::MAX));
        change.hold = Some("refused by the ledger 10 times: exceeds block gas limit".to_owned());
        change.hold_until_decision = true;
    });
    let held = server.withdrawal(&id);
    assert_eq!(held["state"], "held", "{held}");
    assert!(held["waits_for"].as_str().unwrap().contains("exceeds block gas limit"), "{held}");
    assert_eq!(post_operation(&server, &id, "cancel").json()["state"], "parked");
    assert_eq!(notified.try_recv().unwrap(), [service(ADMIN)]);
    assert_eq!(server.take().attempt, 2);
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
fn operations_need_a_withdrawal_and_a_reason() {
    let server = server_with_pools();
    let id = server.withdraw("5");
    let unknown = WithdrawalId::from_bytes([0; 16]);
    for operation in ["retry", "cancel"] {
        assert_eq!(post_operation(&server, &unknown, operation).error(), (404, 1025));
        let path = format!("/withdrawals/{id}/{operation}");
        let post = |body: &[u8]| server.client().request("POST", &path, &[JSON], body);
        assert_eq!(post(b"invalid").error(), (400, 1022));
        assert_eq!(post(b"{\"force\":true}").error(), (400, 1022));
        assert_eq!(post(b"{}").error(), (400, 1023));
        assert!([202, 409].contains(&post(br#"{"reason": "a test"}"#).status));
        let invalid_id = server.client().request(
            "POST",
            &format!("/withdrawals/zz/{operation}"),
            &[JSON],
            b"{}",
        );
        assert_eq!(invalid_id.error(), (400, 60));
    }
}
