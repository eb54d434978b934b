//! What the API reports to clients, from scheduling to payment.

use std::{collections::BTreeSet, thread};

use grid_batch_test_support::http::{request, send};
use serde_json::json;

use crate::harness::{WithdrawalHarness, WithdrawalServer, count_values};

#[test]
fn withdrawal_is_reported_until_it_is_paid() {
    assert_reported_until_paid(&WithdrawalHarness::new(1));
}

#[test]
fn withdrawal_on_hardhat_is_reported_until_it_is_paid() {
    assert_reported_until_paid(&WithdrawalHarness::on_hardhat());
}

fn assert_reported_until_paid(harness: &WithdrawalHarness) {
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve();
    let response = server.post("/withdrawals", &harness.withdrawal_request(0, 12));
    assert_eq!(response.status, 201, "{response:?}");
    let scheduled = response.json();
    assert!(scheduled["withdrawal_id"].is_null() && scheduled["fail_reason"].is_null());
    assert_eq!(scheduled["amount"], "12");

    let id = scheduled["id"].as_str().unwrap().to_owned();
    let pending = server.wait_for_state(&id, "pending");
    assert!(pending["waits_for"].is_string(), "{pending}");
    harness.anvil.mine(1).unwrap();
    let withdrawal = server.wait_until_withdrawn(&[id]).remove(0);
    assert_eq!(withdrawal["withdrawal_id"], harness.polls(0)[0].id.as_str());
    assert!(
        withdrawal["waits_for"].is_null() && withdrawal["ended_at"].is_string(),
        "{withdrawal}"
    );
    let listed = server.get("/withdrawals").json();
    assert_eq!(listed["data"][0]["id"], withdrawal["id"], "{listed}");
}

#[test]
fn web_page_requests_no_withdrawal() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let body = harness.withdrawal_request(0, 12).to_string();
    let json = "content-type: application/json";
    for (headers, status) in [
        (&["origin: https://evil.example", json][..], 403),
        (&["origin: null", json], 403),
        (&["sec-fetch-site: cross-site", json], 403),
        (&["host: evil.example", json], 421),
        (&["content-type: text/plain"], 415),
        (&[], 415),
    ] {
        let post = request("POST", "/withdrawals", headers, body.as_bytes());
        assert_eq!(send(server.address, &post).unwrap().status, status, "{headers:?}");
    }
    assert_eq!(server.get("/withdrawals").json()["data"], json!([]));
}

#[test]
fn repeated_request_with_a_key_is_one_withdrawal() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let mut request = harness.withdrawal_request(0, 5);
    request["idempotency_key"] = json!("invoice 5");
    let ids: BTreeSet<String> = (0..3).map(|_| server.schedule(&request)).collect();
    assert_eq!(ids.len(), 1);
    server.wait_until_withdrawn(&ids.into_iter().collect::<Vec<_>>());
    server.schedule(&request);
    request["amount"] = json!("6");
    assert_eq!(server.post("/withdrawals", &request).status, 409);
    assert_eq!(harness.paid(0), [5]);
}

#[test]
fn repeated_request_ignores_a_new_gas_admin_of_the_pool() {
    let harness = WithdrawalHarness::new(2);
    let server = harness.serve();
    let mut request = harness.withdrawal_request(0, 1);
    request["idempotency_key"] = json!("once");
    let id = server.schedule(&request);
    server.wait_for_state(&id, "withdrawn");
    server.process.kill();
    let [first, second] = [0, 1].map(|pool: usize| harness.pools[pool].address());
    let mut command = harness.command(&[]);
    command.env("GRID_BATCH_POOLS_GAS_ADMIN", format!("{first}=admin1,{second}=admin1"));
    let server = WithdrawalServer::start(command);
    assert_eq!(server.schedule(&request), id);
    assert_eq!(harness.paid(0), [1]);
}

#[test]
fn concurrent_claims_of_a_reward_are_paid_once() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let reward =
        json!({"pool": harness.pools[0].address(), "amount": "9", "once_per_member": true});
    let reward = server.post("/rewards", &reward);
    assert_eq!(reward.status, 201, "{reward:?}");
    let id = reward.json()["id"].as_str().unwrap().to_owned();
    let member = json!({"beneficiary": format!("0x{:040x}", 0xabc)});
    let paths = [format!("/rewards/{id}/claim"), format!("/rewards/{id}/give")];
    let statuses = thread::scope(|scope| {
        let claims: Vec<_> = (0..16)
            .map(|number| {
                scope.spawn({
                    let (server, path, member) = (&server, &paths[number % 2], &member);
                    move || server.post(path, member)
                })
            })
            .collect();
        count_values(claims.into_iter().map(|claim| claim.join().unwrap().status))
    });
    assert_eq!(statuses, [(201, 1), (409, 15)].into());
    let listed = server.get("/withdrawals").json();
    let ids: Vec<String> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|withdrawal| withdrawal["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 1, "{listed}");
    server.wait_until_withdrawn(&ids);
    assert_eq!(harness.paid(0), [9]);
}

#[test]
fn batches_of_other_ledgers_are_rejected() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let response = server.post("/batches", &json!([]));
    assert_eq!(response.status, 404, "{response:?}");
    assert!(response.body.contains("withdrawals"), "{response:?}");
}
