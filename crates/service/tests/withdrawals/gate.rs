//! The gate for the gas price.

use serde_json::{Value, json};

use crate::{
    until::until,
    world::{Serving, World},
};

/// What a parked withdrawal looks like: nothing was signed, nothing has failed.
#[track_caller]
fn assert_untouched(told: &Value) {
    assert_eq!(told["transactions"], json!([]), "{told}");
    assert!(told["withdrawal_id"].is_null() && told["fail_reason"].is_null(), "{told}");
}

#[test]
fn a_price_above_the_cap_parks_and_what_was_parked_goes_on_by_itself() {
    let world = World::new(2);
    world.anvil.stop_mining().unwrap();
    world.anvil.set_base_fee(250).unwrap();
    let serving = world.serve();
    let ids: Vec<String> = [(0, 1), (0, 2), (1, 3)]
        .iter()
        .map(|(pool, amount)| serving.schedule(&world.order(*pool, *amount)))
        .collect();
    let parked = serving.until(&ids[0], "parked");
    serving.until(&ids[2], "parked");
    let reason = parked["waits_for"].as_str().unwrap();
    assert!(reason.contains("251 gwei") && reason.contains("200 gwei"), "{reason}");

    // It looks again and again, and touches nothing.
    let looks = world.proxy.calls("eth_feeHistory");
    until("it looks again", || world.proxy.calls("eth_feeHistory") > looks + 3);
    let second = serving.withdrawal(&ids[1]);
    assert_eq!(second["state"], "scheduled", "{second}");
    for told in ids.iter().map(|id| serving.withdrawal(id)) {
        assert_untouched(&told);
    }
    assert_eq!(world.proxy.calls("eth_sendRawTransaction"), 0);

    world.anvil.set_base_fee(100).unwrap();
    world.anvil.start_mining().unwrap();
    serving.until_withdrawn(&ids);
    assert_eq!((world.paid(0), world.paid(1)), (vec![1, 2], vec![3]));
    assert_eq!((world.nonce(0), world.nonce(1)), (2, 1));
}

#[test]
fn the_price_at_the_cap_parks_and_below_it_does_not() {
    let world = World::new(1);
    world.anvil.stop_mining().unwrap();
    // A tip of one gwei comes on top.
    world.anvil.set_base_fee(99).unwrap();
    let variable = |gwei: &str| {
        let mut command = world.command(&[]);
        command.env("GRID_BATCH_EVM_MAXIMUM_GAS_PRICE", gwei);
        Serving::start(command)
    };
    let serving = variable("100");
    let id = serving.schedule(&world.order(0, 1));
    assert_untouched(&serving.until(&id, "parked"));
    serving.program.kill();

    let serving = variable("100.000000001");
    serving.until(&id, "pending");
    world.anvil.mine(1).unwrap();
    serving.until_withdrawn(&[id]);
    let hash = world.polls(0).remove(0).transaction_hash;
    let sent = world.anvil.rpc("eth_getTransactionByHash", json!([hash])).unwrap();
    assert_eq!(sent["maxFeePerGas"], format!("{:#x}", 100_000_000_001_u64), "it bids the cap");
}

#[test]
fn the_cap_of_one_pool_parks_its_gas_admin_and_no_other() {
    let world = World::new(2);
    let cap = format!("{}=1.5", world.pools[0].address());
    let serving = world.serve_with(&[("--evm-pool-maximum-gas-price", &cap)]);
    let ids = [0, 1].map(|pool| serving.schedule(&world.order(pool, 1)));
    serving.until_withdrawn(&ids[1..]);
    let told = serving.until(&ids[0], "parked");
    assert!(told["waits_for"].as_str().unwrap().contains("1.5 gwei"), "{told}");
    assert_untouched(&told);
}

#[test]
fn without_money_for_gas_it_parks_and_says_so() {
    let world = World::new(1);
    let admin = &world.anvil.accounts()[0].address;
    world.anvil.set_balance(admin, 1_000).unwrap();
    let serving = world.serve();
    let id = serving.schedule(&world.order(0, 1));
    let told = serving.until(&id, "parked");
    let reason = told["waits_for"].as_str().unwrap();
    assert!(!reason.contains("gas price is") && reason.contains("has"), "{reason}");
    assert_untouched(&told);
    world.anvil.set_balance(admin, 1_000_000_000_000_000_000).unwrap();
    serving.until_withdrawn(&[id]);
}

#[test]
fn a_node_that_is_away_parks_or_delays_and_fails_nothing() {
    let world = World::new(1);
    world.proxy.set("eth_feeHistory", grid_batch_test_chain::Fault::status(502));
    world.proxy.set("eth_gasPrice", grid_batch_test_chain::Fault::status(502));
    let serving = world.serve();
    let id = serving.schedule(&world.order(0, 1));
    let told = serving.until(&id, "parked");
    assert!(told["waits_for"].as_str().unwrap().contains("gas price is unavailable"), "{told}");
    assert_untouched(&told);
    world.proxy.clear();
    serving.until_withdrawn(&[id]);
}
