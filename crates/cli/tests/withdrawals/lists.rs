//! Lists of withdrawals, after the configuration has changed.

use serde_json::{Value, json};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

#[test]
fn list_of_a_removed_pool_is_still_readable() {
    let harness = WithdrawalHarness::new(2);
    let server = harness.serve();
    let paid = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_until_withdrawn(std::slice::from_ref(&paid));
    harness.set_pool_owner(0, 5);
    let refused = server.schedule(&harness.withdrawal_request(0, 2));
    server.wait_for_state(&refused, "failed");
    server.process.kill();

    let [removed, kept] = [0, 1].map(|pool: usize| harness.pools[pool].address());
    let mut command = harness.command(&[]);
    command.env("GRID_BATCH_POOLS_GAS_ADMIN", format!("{kept}=admin1"));
    let server = WithdrawalServer::start(command);
    let list = |query: &str| {
        let page = server.get(&format!("/withdrawals?pool={removed}{query}")).json();
        let data = page["data"].as_array().unwrap_or_else(|| panic!("{page}")).clone();
        data.into_iter().map(|withdrawal| withdrawal["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(list(""), [json!(refused), json!(paid)]);
    assert_eq!(list("&state=failed"), [json!(refused)]);
    assert_eq!(list("&state=withdrawn"), [json!(paid)]);
    assert_eq!(list("&state=open"), Vec::<Value>::new());
    let request = server.post("/withdrawals", &harness.withdrawal_request(0, 3));
    assert_eq!(request.status, 400, "{request:?}");
    assert!(request.body.contains("not configured"), "{request:?}");
}
