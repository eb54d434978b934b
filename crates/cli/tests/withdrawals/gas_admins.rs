//! Who is told about gas: `/v1/gas-admins`, the health and the log.

use std::time::{Duration, Instant};

use grid_batch_test_chain::Fault;
use grid_batch_test_support::wait::{wait_for, wait_until};
use serde_json::Value;

use crate::harness::{WithdrawalHarness, WithdrawalServer};

const COIN: u128 = 1_000_000_000_000_000_000;
/// Balances are read as fast as the tests need.
const FAST_LOOK: (&str, &str) = ("--testing-balance-interval", "100ms");

fn gas_admins(server: &WithdrawalServer) -> Vec<Value> {
    let response = server.get("/v1/gas-admins");
    assert_eq!(response.status, 200, "{response:?}");
    response.json()["data"].as_array().unwrap().clone()
}

/// Waits until the first gas admin meets the condition, and returns it.
fn wait_for_gas_admin(
    server: &WithdrawalServer,
    what: &str,
    condition: impl Fn(&Value) -> bool,
) -> Value {
    wait_for(what, || Some(gas_admins(server).remove(0)).filter(|admin| condition(admin)))
}

fn gas_part(server: &WithdrawalServer) -> Value {
    server.get("/health").json()["parts"]["gas"].clone()
}

#[test]
fn balance_and_price_are_known_while_nothing_is_queued() {
    let harness = WithdrawalHarness::new(2);
    let server = harness.serve_with(&[FAST_LOOK]);
    let admin = wait_for_gas_admin(&server, "the balance is read", |admin| {
        admin["pools"][0]["balance"]["value"].is_string()
    });
    let address = admin["address"].as_str().unwrap().to_lowercase();
    assert_eq!(admin["name"], "admin0", "{admin}");
    assert_eq!(address, harness.anvil.accounts()[0].address.to_lowercase());
    let balance: u128 = admin["balance"]["value"].as_str().unwrap().parse().unwrap();
    assert!(balance > 9_000 * COIN, "{admin}");
    assert!(admin["balance"]["error"].is_null() && admin["balance"]["age_seconds"].is_number());
    assert!(admin["gas_price_gwei"]["value"].is_string(), "{admin}");
    assert_eq!(admin["maximum_gas_price_gwei"], "200", "{admin}");
    assert_eq!((&admin["queue"]["open"], &admin["gas_is_assumed"]), (&0.into(), &true.into()));
    assert!(admin["last_failure"].is_null() && admin["pools"][0]["paused"].is_null(), "{admin}");
    assert_eq!(gas_admins(&server).len(), 2);
    let metrics = server.get("/metrics").body;
    for name in ["gas_admin_balance_wei", "gas_price_wei", "gas_price_cap_wei"] {
        let sample = format!("grid_batch_{name}{{gas_admin=\"admin0\"}} ");
        assert!(metrics.contains(&sample), "{sample} in {metrics}");
    }
    assert!(metrics.contains("grid_batch_gas_price_cap_wei{gas_admin=\"admin0\"} 200000000000\n"));
    let of_alert = "grid_batch_health_number{part=\"gas\",number=\"paid_after_failure\"} 0\n";
    wait_until("the number that an alert uses is there", || {
        server.get("/metrics").body.contains(of_alert)
    });

    harness.anvil.set_balance(&harness.anvil.accounts()[0].address, 5 * COIN).unwrap();
    wait_for_gas_admin(&server, "the balance is read again", |admin| {
        admin["balance"]["value"] == (5 * COIN).to_string()
    });
    let printed = format!("{}{}", server.process.stderr(), gas_admins(&server)[0]);
    assert!(!printed.contains(harness.anvil.accounts()[0].secret_key.trim_start_matches("0x")));
}

#[test]
fn low_balance_is_told_before_it_stops_anything() {
    let harness = WithdrawalHarness::new(1);
    let account = &harness.anvil.accounts()[0].address;
    let server = harness.serve_with(&[FAST_LOOK]);
    server.wait_until_withdrawn(&[server.schedule(&harness.withdrawal_request(0, 1))]);
    assert_eq!(gas_part(&server)["status"], "ok");

    // It pays for some withdrawals, and for fewer than twenty at the cap.
    harness.anvil.set_balance(account, COIN / 10).unwrap();
    wait_until("the health says so", || gas_part(&server)["low_balances"] == 1);
    assert!(gas_part(&server)["reason"].as_str().unwrap().contains("admin0"));
    let admin = wait_for_gas_admin(&server, "it is shown", |admin| admin["low_balance"] == true);
    let left = admin["withdrawals_left"].as_u64().unwrap();
    assert!((1..20).contains(&left), "{admin}");
    assert_eq!(admin["gas_is_assumed"], false, "{admin}");
    server.wait_until_withdrawn(&[server.schedule(&harness.withdrawal_request(0, 2))]);
    wait_until("the log warns", || {
        server.process.stderr().contains("the balance of a gas admin is low")
    });

    harness.anvil.set_balance(account, 10 * COIN).unwrap();
    wait_until("the warning ends", || gas_part(&server)["status"] == "ok");
    wait_until("the log says so", || server.process.stderr().contains("is sufficient again"));
    let warnings = server.process.stderr().matches("the balance of a gas admin is low").count();
    assert_eq!(warnings, 1, "it is logged once");
}

#[test]
fn price_above_the_cap_is_shown_with_what_waits() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    harness.anvil.set_base_fee(250).unwrap();
    let server = harness.serve_with(&[FAST_LOOK]);
    let ids = [1, 2, 3].map(|amount| server.schedule(&harness.withdrawal_request(0, amount)));
    server.wait_for_state(&ids[0], "parked");
    let admin = wait_for_gas_admin(&server, "the pool is paused", |admin| {
        admin["pools"][0]["paused"].is_object() && admin["queue"]["parked"] == 1
    });
    let reason = admin["pools"][0]["paused"]["reason"].as_str().unwrap();
    assert!(reason.contains("251 gwei") && reason.contains("200 gwei"), "{reason}");
    let queue = &admin["queue"];
    assert_eq!(
        (&queue["open"], &queue["waiting"], &queue["parked"]),
        (&3.into(), &2.into(), &1.into())
    );
    assert!(queue["oldest_scheduled_at"].is_string() && queue["last_error"].is_string(), "{queue}");
    let cost: u128 = admin["estimated_cost"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        cost,
        3 * 251_000_000_000 * u128::from(admin["gas_per_withdrawal"].as_u64().unwrap())
    );
    let gas = gas_part(&server);
    assert_eq!((&gas["status"], &gas["pools_above_cap"]), (&"degraded".into(), &1.into()));

    harness.anvil.set_base_fee(10).unwrap();
    harness.anvil.start_mining().unwrap();
    server.wait_until_withdrawn(&ids);
    wait_until("the pause ends", || gas_admins(&server)[0]["pools"][0]["paused"].is_null());
}

#[test]
fn last_failure_is_shown_with_its_reason() {
    let harness = WithdrawalHarness::new(1);
    harness.set_pool_owner(0, 5);
    let server = harness.serve_with(&[FAST_LOOK]);
    let id = server.schedule(&harness.withdrawal_request(0, 7));
    let failed = server.wait_for_state(&id, "failed");
    let admin = gas_admins(&server).remove(0);
    let failure = &admin["last_failure"];
    assert_eq!((&failure["id"], &failure["reason"]), (&id.into(), &failed["fail_reason"]));
    let pool = failure["pool"].as_str().unwrap().to_lowercase();
    assert_eq!(pool, harness.pools[0].address().to_lowercase());
    assert_eq!(failure, &admin["pools"][0]["last_failure"]);
    assert_eq!(admin["pools"][0]["scheduled_in_24h"], "0", "{admin}");
}

#[test]
fn answer_does_not_wait_for_a_hung_node() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve_with(&[FAST_LOOK]);
    let known = wait_for_gas_admin(&server, "the balance is read", |admin| {
        admin["balance"]["value"].is_string()
    });
    for method in ["eth_getBalance", "eth_feeHistory", "eth_gasPrice"] {
        harness.proxy.set(method, Fault::status(502));
    }
    let admin = wait_for_gas_admin(&server, "the failure is shown", |admin| {
        admin["balance"]["error"].is_string() && admin["gas_price_gwei"]["error"].is_string()
    });
    assert_eq!(admin["balance"]["value"], known["balance"]["value"], "{admin}");
    harness.proxy.set("eth_getBalance", Fault::Slow(Duration::from_secs(5)));
    let asked = harness.proxy.calls("eth_getBalance");
    wait_until("the node is asked", || harness.proxy.calls("eth_getBalance") > asked);
    let started = Instant::now();
    gas_admins(&server);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}
