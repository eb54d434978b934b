//! The gate for the gas price.

use grid_batch_test_chain::Fault;
use grid_batch_test_support::wait::wait_until;
use serde_json::{Value, json};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

/// Asserts that nothing was signed and that nothing failed.
#[track_caller]
fn assert_not_started(withdrawal: &Value) {
    assert_eq!(withdrawal["transactions"], json!([]), "{withdrawal}");
    assert!(
        withdrawal["withdrawal_id"].is_null() && withdrawal["fail_reason"].is_null(),
        "{withdrawal}"
    );
}

#[test]
fn price_above_the_cap_parks_until_it_falls() {
    let harness = WithdrawalHarness::new(2);
    harness.anvil.stop_mining().unwrap();
    harness.anvil.set_base_fee(250).unwrap();
    let server = harness.serve();
    let ids: Vec<String> = [(0, 1), (0, 2), (1, 3)]
        .iter()
        .map(|(pool, amount)| server.schedule(&harness.withdrawal_request(*pool, *amount)))
        .collect();
    let parked = server.wait_for_state(&ids[0], "parked");
    server.wait_for_state(&ids[2], "parked");
    let reason = parked["waits_for"].as_str().unwrap();
    assert!(reason.contains("251 gwei") && reason.contains("200 gwei"), "{reason}");

    // The gate queries the price again and again, and nothing is sent.
    let queries = harness.proxy.calls("eth_feeHistory");
    wait_until("the price is queried again", || {
        harness.proxy.calls("eth_feeHistory") > queries + 3
    });
    let second = server.withdrawal(&ids[1]);
    assert_eq!(second["state"], "scheduled", "{second}");
    for withdrawal in ids.iter().map(|id| server.withdrawal(id)) {
        assert_not_started(&withdrawal);
    }
    assert_eq!(harness.proxy.calls("eth_sendRawTransaction"), 0);

    harness.anvil.set_base_fee(100).unwrap();
    harness.anvil.start_mining().unwrap();
    server.wait_until_withdrawn(&ids);
    assert_eq!((harness.paid(0), harness.paid(1)), (vec![1, 2], vec![3]));
    assert_eq!((harness.nonce(0), harness.nonce(1)), (2, 1));
}

#[test]
fn price_above_the_cap_parks_on_hardhat() {
    let harness = WithdrawalHarness::on_hardhat();
    harness.anvil.stop_mining().unwrap();
    harness.anvil.set_base_fee(250).unwrap();
    let server = harness.serve();
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    let parked = server.wait_for_state(&id, "parked");
    let reason = parked["waits_for"].as_str().unwrap();
    let expected = "the base fee is 250 gwei, not below the cap of 200 gwei";
    assert!(reason.starts_with(expected), "{reason}");
    assert_not_started(&parked);
    harness.anvil.set_base_fee(100).unwrap();
    harness.anvil.start_mining().unwrap();
    server.wait_until_withdrawn(&[id]);
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![1], 1));
}

#[test]
fn price_at_the_cap_parks_and_below_it_does_not() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    // A tip of one gwei is added.
    harness.anvil.set_base_fee(99).unwrap();
    let serve_with_cap = |gwei: &str| {
        let mut command = harness.command(&[]);
        command.env("GRID_BATCH_EVM_MAXIMUM_GAS_PRICE", gwei);
        WithdrawalServer::start(command)
    };
    let server = serve_with_cap("100");
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    assert_not_started(&server.wait_for_state(&id, "parked"));
    server.process.kill();

    let server = serve_with_cap("100.000000001");
    server.wait_for_state(&id, "pending");
    harness.anvil.mine(1).unwrap();
    server.wait_until_withdrawn(&[id]);
    let hash = harness.polls(0).remove(0).transaction_hash;
    let sent = harness.anvil.rpc("eth_getTransactionByHash", json!([hash])).unwrap();
    assert_eq!(
        sent["maxFeePerGas"],
        format!("{:#x}", 100_000_000_001_u64),
        "the maximum fee is the cap"
    );
}

#[test]
fn cap_of_a_pool_parks_only_its_gas_admin() {
    let harness = WithdrawalHarness::new(2);
    let cap = format!("{}=1.01", harness.pools[0].address());
    let server = harness.serve_with(&[("--pools-maximum-gas-price", &cap)]);
    let ids = [0, 1].map(|pool| server.schedule(&harness.withdrawal_request(pool, 1)));
    server.wait_until_withdrawn(&ids[1..]);
    let withdrawal = server.wait_for_state(&ids[0], "parked");
    assert!(withdrawal["waits_for"].as_str().unwrap().contains("1.01 gwei"), "{withdrawal}");
    assert_not_started(&withdrawal);
}

#[test]
fn missing_balance_for_gas_parks_with_a_reason() {
    let harness = WithdrawalHarness::new(1);
    let admin = &harness.anvil.accounts()[0].address;
    harness.anvil.set_balance(admin, 1_000).unwrap();
    let server = harness.serve();
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    let withdrawal = server.wait_for_state(&id, "parked");
    let reason = withdrawal["waits_for"].as_str().unwrap();
    assert!(!reason.contains("gas price is") && reason.contains("has"), "{reason}");
    assert_not_started(&withdrawal);
    let health = server.get("/health").json();
    let gas = &health["parts"]["gas"];
    assert_eq!((&health["status"], &gas["status"]), (&"degraded".into(), &"degraded".into()));
    assert_eq!(gas["accounts_without_funds"], 1, "{health}");
    let paused = server.get("/v1/gas-admins").json()["data"][0]["pools"][0]["paused"].clone();
    assert!(paused["reason"].as_str().unwrap().contains("too few coins"), "{paused}");
    harness.anvil.set_balance(admin, 1_000_000_000_000_000_000).unwrap();
    server.wait_until_withdrawn(&[id]);
    assert_eq!(server.get("/health").json()["parts"]["gas"]["status"], "ok");
}

#[test]
fn unavailable_node_parks_and_fails_nothing() {
    let harness = WithdrawalHarness::new(1);
    harness.proxy.set("eth_feeHistory", Fault::status(502));
    harness.proxy.set("eth_gasPrice", Fault::status(502));
    let server = harness.serve();
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    let withdrawal = server.wait_for_state(&id, "parked");
    assert!(
        withdrawal["waits_for"].as_str().unwrap().contains("gas price is unavailable"),
        "{withdrawal}"
    );
    assert_not_started(&withdrawal);
    harness.proxy.clear();
    server.wait_until_withdrawn(&[id]);
}
