//! A chain that has lost many transactions of a gas admin, and nodes that are wrong about its nonces.

use grid_batch_test_chain::Fault;
use grid_batch_test_support::{process::run, wait::wait_until};
use serde_json::json;

use crate::harness::WithdrawalHarness;

#[test]
fn gap_longer_than_the_limit_is_said_and_then_closed() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve_with(&[("--evm-longest-gap", "2")]);
    let ids = [1, 2, 3].map(|amount| server.schedule(&harness.withdrawal_request(0, amount)));
    server.wait_until_withdrawn(&ids);
    harness.anvil.reorg(3).unwrap();
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![], 0));

    let id = server.schedule(&harness.withdrawal_request(0, 4));
    let parked = server.wait_for_state(&id, "parked");
    let waits_for = parked["waits_for"].as_str().unwrap();
    for part in ["the nonces 0 to 2", "the lowest is 0", "set evm.longest_gap to 3"] {
        assert!(waits_for.contains(part), "{waits_for}");
    }
    assert_eq!(harness.nonce(0), 0);
    drop(server);
    let server = harness.serve_with(&[("--evm-longest-gap", "3")]);
    server.wait_until_withdrawn(&[id]);
    assert_eq!(harness.paid(0), [1, 2, 3, 4]);
}

/// A confirmation over HTTP, a wrong one, and its correction by the command.
#[test]
fn wrong_nonce_parks_until_an_operator_corrects_it() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let first = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_until_withdrawn(&[first]);
    harness.proxy.set("eth_getTransactionCount", Fault::Result(json!("0x384")));
    let id = server.schedule(&harness.withdrawal_request(0, 2));
    let parked = server.wait_for_state(&id, "parked");
    let service = parked["gas_admin"].as_str().unwrap();
    let command = format!("grid-batch nonce {service} 900 start");
    assert!(parked["waits_for"].as_str().unwrap().contains(&command), "{parked}");
    assert_eq!(harness.nonce(0), 1);

    // The operator believes the node. Nothing is signed before it is right again.
    let service_path = format!("/v1/services/{}", service.replace(':', "%3A"));
    let act = |verb: &str, body| {
        let done = server.post(&format!("{service_path}/{verb}"), &body);
        assert_eq!(done.status, 200, "{done:?}");
        done.json()
    };
    act("pause", json!({ "reason": "a test" }));
    let started = act("nonces/start", json!({ "nonce": 900, "reason": "the node says so" }));
    assert_eq!(started["changed"]["to"], "the next nonce is 900");
    harness.proxy.clear();
    act("resume", json!({ "reason": "a test" }));
    wait_until("the gap is said", || {
        let waits_for = server.withdrawal(&id)["waits_for"].clone();
        waits_for.as_str().is_some_and(|text| text.contains(&format!("{service} 1 start")))
    });
    let corrected =
        run(harness.command_with(&["nonce", service, "1", "start", "--reason", "a test"]));
    assert_eq!(corrected.exit_code, Some(0), "{corrected:?}");
    server.wait_until_withdrawn(&[id]);
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![1, 2], 2));
}

/// A node was wrong when a withdrawal was signed.
#[test]
fn missing_nonces_are_filled_over_http() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve_with(&[("--evm-longest-gap", "2")]);
    let first = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_until_withdrawn(&[first]);
    harness.proxy.set("eth_getTransactionCount", Fault::Result(json!("0x5")));
    let id = server.schedule(&harness.withdrawal_request(0, 2));
    let parked = server.wait_for_state(&id, "parked");
    let service = parked["gas_admin"].as_str().unwrap();
    let nonces = format!("/v1/services/{}/nonces", service.replace(':', "%3A"));
    let started =
        server.post(&format!("{nonces}/start"), &json!({ "nonce": 5, "reason": "shown" }));
    assert_eq!(started.status, 200, "{started:?}");
    wait_until("it is signed", || server.withdrawal(&id)["transactions"][0]["nonce"] == 5);

    harness.proxy.clear();
    wait_until("the way out is said", || {
        let waits_for = server.withdrawal(&id)["waits_for"].clone();
        waits_for.as_str().is_some_and(|text| text.contains(&format!("{service} 1-4 fill")))
    });
    let filled = server
        .post(&format!("{nonces}/fill"), &json!({ "first": 1, "last": 4, "reason": "never used" }));
    assert_eq!(filled.status, 200, "{filled:?}");
    server.wait_until_withdrawn(&[id]);
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![1, 2], 6));
}
