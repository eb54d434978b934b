//! Withdrawals and transactions in the dashboard, in a real browser. The scripts of `tests/dashboard` use it.

use std::path::Path;

use grid_batch_test_support::{browser, wait::wait_until};
use serde_json::{Value, json};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

const RECIPIENT: &str = "0x00000000000000000000000000000000beef0009";

fn run_script(name: &str, harness: &WithdrawalHarness, server: &WithdrawalServer, ids: Value) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = sources.join("tests/dashboard").join(name);
    let mut arguments = ids;
    arguments["url"] = format!("http://{}", server.address).into();
    browser::run_script(&script, harness.path(), &sources.join("../../docs/images"), arguments);
}

fn send(server: &WithdrawalServer, body: &Value) -> String {
    let answer = server.post("/v1/transactions", body);
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn wait_for_state(server: &WithdrawalServer, id: &str, state: &str) {
    let path = format!("/v1/transactions/{id}");
    wait_until(&format!("{id} is {state}"), || server.get(&path).json()["state"] == state);
}

#[test]
fn withdrawals_and_the_price_against_the_cap_are_shown() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    harness.anvil.set_base_fee(250).unwrap();
    let server = harness.serve();
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_for_state(&id, "parked");
    run_script("withdrawals.mjs", &harness, &server, json!({ "withdrawal": id }));
}

#[test]
fn transactions_are_shown_cancelled_and_retried() {
    let harness = WithdrawalHarness::new(1);
    // Its owner calls the pool, which is not configured here.
    let server = harness.serve_calls(&[("--pools-gas-admin", "")]);
    let executed = send(
        &server,
        &json!({
            "account": "admin0",
            "to": harness.pools[0].address(),
            "call": {"signature": "proposeWithdraw(uint256,address)", "arguments": ["5", RECIPIENT]},
            "abi": ["event WithdrawPollCreated(uint256 id, uint256 indexed member)"],
            "label": "order 7",
        }),
    );
    wait_for_state(&server, &executed, "executed");
    let parked = send(
        &server,
        &json!({
            "account": "admin0", "to": RECIPIENT, "value": "7", "maximum_gas_price": "0.000000001",
            "deadline": "2100-01-01T00:00:00Z", "data": format!("0x{}", "ab".repeat(200)),
        }),
    );
    wait_for_state(&server, &parked, "parked");
    let ids = json!({ "executed": executed, "parked": parked, "recipient": RECIPIENT });
    run_script("transactions.mjs", &harness, &server, ids);
}
