//! Limits of what a pool pays, and the beneficiaries that it may pay.

use std::{fs, thread};

use grid_batch_test_support::http::Response;
use serde_json::{Value, json};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

/// The number and the code of an error.
#[track_caller]
fn error_of(response: &Response) -> (u16, u64) {
    let json = response.json();
    (response.status, json["error"]["code"].as_u64().unwrap_or_else(|| panic!("{json}")))
}

fn message(response: &Response) -> String {
    response.json()["error"]["message"].as_str().unwrap().to_owned()
}

fn post(server: &WithdrawalServer, withdrawal: &Value) -> Response {
    server.post("/withdrawals", withdrawal)
}

/// A setting of the first pool.
fn of_pool(harness: &WithdrawalHarness, value: &str) -> String {
    format!("{}={value}", harness.pools[0].address().to_lowercase())
}

#[test]
fn amount_above_the_cap_is_refused() {
    let harness = WithdrawalHarness::new(2);
    let server = harness.serve_with(&[("--pools-maximum-payment", &of_pool(&harness, "10"))]);
    let refused = post(&server, &harness.withdrawal_request(0, 11));
    assert_eq!(error_of(&refused), (403, 1041));
    assert!(message(&refused).contains("pools.*.maximum_payment"), "{}", message(&refused));
    let ids = [(0, 10), (1, 11)]
        .map(|(pool, amount)| server.schedule(&harness.withdrawal_request(pool, amount)));
    server.wait_until_withdrawn(&ids);
}

#[test]
fn concurrent_requests_do_not_exceed_the_limit_of_a_day() {
    let harness = WithdrawalHarness::on_postgres(1);
    let server =
        harness.serve_with(&[("--pools-maximum-payments-per-day", &of_pool(&harness, "50"))]);
    let request = harness.withdrawal_request(0, 10);
    let answers: Vec<Response> = thread::scope(|scope| {
        let callers: Vec<_> = (0..12).map(|_| scope.spawn(|| post(&server, &request))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let (stored, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == 201);
    assert_eq!((stored.len(), refused.len()), (5, 7));
    for answer in refused {
        assert_eq!(error_of(answer), (429, 1042));
        assert!(message(answer).contains("has 0 left of its limit"), "{}", message(answer));
    }
    let shown = server.get("/v1/gas-admins").json()["data"][0]["pools"][0].clone();
    assert_eq!(
        (&shown["scheduled_in_24h"], &shown["maximum_payments_per_day"]),
        (&"50".into(), &"50".into())
    );
}

#[test]
fn rewards_repetitions_and_retries_follow_the_limit() {
    let harness = WithdrawalHarness::new(1);
    harness.set_pool_owner(0, 5);
    let server =
        harness.serve_with(&[("--pools-maximum-payments-per-day", &of_pool(&harness, "10"))]);
    let pool = harness.pools[0].address();
    let reward = server.post("/rewards", &json!({"pool": pool, "amount": "6"})).json();
    let path = format!("/rewards/{}/give", reward["id"].as_str().unwrap());
    let give = |member: u64| {
        server.post(&path, &json!({"beneficiary": format!("0x{:040x}", 0xbeef_0000_u64 + member)}))
    };
    let first = give(1);
    assert_eq!(first.status, 201, "{first:?}");
    let id = first.json()["id"].as_str().unwrap().to_owned();
    // The pool refuses it, so that it counts no longer, and the next one has its place.
    server.wait_for_state(&id, "failed");
    harness.anvil.stop_mining().unwrap();
    harness.set_pool_owner(0, 0);
    assert_eq!(give(2).status, 201);
    assert_eq!(error_of(&give(3)), (429, 1042));
    let retry = server.post(&format!("/withdrawals/{id}/retry"), &json!({ "reason": "a test" }));
    assert_eq!(error_of(&retry), (429, 1042));
    assert_eq!(server.withdrawal(&id)["state"], "failed");

    let keyed = |amount: u64| {
        let mut request = harness.withdrawal_request(0, amount);
        request["idempotency_key"] = "invoice".into();
        post(&server, &request)
    };
    let (once, again) = (keyed(4), keyed(4));
    assert_eq!((once.status, again.status), (201, 201), "a repetition counts once");
    assert_eq!(once.json()["id"], again.json()["id"]);
}

#[test]
fn only_listed_beneficiaries_are_accepted() {
    let harness = WithdrawalHarness::new(2);
    let (allowed, other) = (harness.withdrawal_request(0, 1), harness.withdrawal_request(0, 2));
    let list = harness.path().join("beneficiaries");
    let line = format!("{}\n", of_pool(&harness, allowed["beneficiary"].as_str().unwrap()));
    fs::write(&list, line).unwrap();
    let server = harness.serve_with(&[("--pools-beneficiaries-file", list.to_str().unwrap())]);
    let refused = post(&server, &other);
    assert_eq!(error_of(&refused), (403, 1040));
    assert!(message(&refused).contains("pools.*.beneficiaries"), "{}", message(&refused));
    let elsewhere = harness.withdrawal_request(1, 2);
    server.wait_until_withdrawn(&[server.schedule(&allowed), server.schedule(&elsewhere)]);
}

#[test]
fn beneficiary_that_was_removed_is_not_paid() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    harness.anvil.set_base_fee(250).unwrap();
    let mut request = harness.withdrawal_request(0, 1);
    request["idempotency_key"] = "invoice".into();
    let server = harness.serve();
    let ids = [server.schedule(&request), server.schedule(&harness.withdrawal_request(0, 2))];
    server.wait_for_state(&ids[0], "parked");
    server.process.kill();

    let kept = harness.withdrawal_request(0, 2)["beneficiary"].as_str().unwrap().to_owned();
    let server = harness.serve_with(&[("--pools-beneficiaries", &kept)]);
    let failed = server.wait_for_state(&ids[0], "failed");
    let reason = failed["fail_reason"].as_str().unwrap();
    assert!(reason.contains("pools.*.beneficiaries"), "{reason}");
    assert_eq!(failed["transactions"], json!([]), "{failed}");
    // The same request again is answered with what became of it.
    assert_eq!(server.schedule(&request), ids[0]);
    harness.anvil.set_base_fee(10).unwrap();
    harness.anvil.start_mining().unwrap();
    server.wait_until_withdrawn(&ids[1..]);
    assert_eq!(harness.paid(0), [2]);
}
