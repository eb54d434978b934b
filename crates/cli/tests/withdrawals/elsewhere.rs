//! Something else uses a gas admin's key, or seems to.

use grid_batch_test_chain::Fault;
use serde_json::{Value, json};

use crate::{
    program::Ended,
    until::until,
    world::{Serving, World},
};

/// Another program with the same key pays more for the same nonce.
fn use_the_first_nonce(world: &World) {
    let admin = &world.anvil.accounts()[0].address;
    let foreign = json!({
        "from": admin, "to": admin, "value": "0x1", "nonce": "0x0", "gas": "0x5208",
        "maxFeePerGas": "0x2540be400", "maxPriorityFeePerGas": "0x2540be400",
    });
    world.anvil.rpc("eth_sendTransaction", json!([foreign])).unwrap();
    world.anvil.mine(1).unwrap();
}

/// A person has looked at the chain, and finds that a withdrawal that is held has come to nothing.
fn find_invalid(world: &World, serving: &Serving, held: &Value) {
    let (id, service) = (held["id"].as_str().unwrap(), held["gas_admin"].as_str().unwrap());
    let listed = Ended::of(world.program(&["held"]));
    let batch = listed.stdout.split_whitespace().find(|word| word.starts_with(id)).unwrap();
    assert!(listed.stdout.contains(service), "{listed:?}");
    let decided = Ended::of(world.program(&["decide", service, batch, "invalid"]));
    assert_eq!(decided.code, Some(0), "{decided:?}");
    assert!(serving.until(id, "failed")["fail_reason"].is_string());
}

fn retry(serving: &Serving, id: &str) {
    assert_eq!(serving.post(&format!("/withdrawals/{id}/retry"), &json!({})).status, 200);
}

/// A world in which the first withdrawal is sent, and nothing is mined.
fn with_one_pending() -> (World, Serving, String) {
    let world = World::new(1);
    world.anvil.stop_mining().unwrap();
    let serving = world.serve();
    let id = serving.schedule(&world.order(0, 1));
    serving.until(&id, "pending");
    (world, serving, id)
}

#[test]
fn a_nonce_that_something_else_has_used_is_held_for_a_person_and_never_replaced_by_itself() {
    let (world, serving, id) = with_one_pending();
    use_the_first_nonce(&world);
    let told = serving.until(&id, "held");
    assert!(told["waits_for"].as_str().unwrap().contains("nonce 0"), "{told}");
    assert!(told["fail_reason"].is_null() && told["withdrawal_id"].is_null(), "{told}");
    assert_eq!((world.paid(0), world.nonce(0)), (vec![], 1));

    find_invalid(&world, &serving, &told);
    retry(&serving, &id);
    world.anvil.start_mining().unwrap();
    serving.until_withdrawn(&[id]);
    assert_eq!((world.paid(0), world.nonce(0)), (vec![1], 2));
}

#[test]
fn a_node_whose_receipts_are_late_proves_no_loss() {
    let (world, serving, id) = with_one_pending();
    let late = ["eth_getTransactionReceipt", "eth_getTransactionByHash"];
    late.iter().for_each(|method| world.proxy.set(method, Fault::Null));
    world.anvil.mine(1).unwrap();
    until("it was looked for in the blocks", || {
        world.proxy.calls("eth_getBlockByNumber") > 0 || serving.withdrawal(&id)["state"] == "held"
    });
    world.proxy.clear();
    world.anvil.start_mining().unwrap();
    serving.until_withdrawn(&[id]);
    assert_eq!((world.paid(0), world.nonce(0)), (vec![1], 1));
}

#[test]
fn what_a_person_has_found_invalid_is_not_made_when_the_chain_changes_its_mind() {
    let (world, serving, id) = with_one_pending();
    use_the_first_nonce(&world);
    find_invalid(&world, &serving, &serving.until(&id, "held"));
    assert_eq!(world.paid(0), [0; 0]);

    world.anvil.reorg(1).unwrap();
    world.anvil.start_mining().unwrap();
    let next = serving.schedule(&world.order(0, 2));
    serving.until_withdrawn(&[next]);
    assert_eq!(world.paid(0), [2]);
    assert_eq!(serving.withdrawal(&id)["state"], "failed");
}
