//! What a pool refuses.

use serde_json::json;

use crate::{until::until, world::World};

/// The pool listens to somebody else from now on.
fn give_away(world: &World, pool: usize, owner: usize) {
    let owner =
        format!("0x{:0>64}", world.anvil.accounts()[owner].address.trim_start_matches("0x"));
    let slot = format!("0x{:064x}", 0);
    let address = world.pools[pool].address();
    world.anvil.rpc("anvil_setStorageAt", json!([address, slot, owner])).unwrap();
}

#[test]
fn a_refusal_fails_with_the_pools_reason_frees_the_next_and_is_tried_again_only_when_told() {
    let world = World::new(1);
    let serving = world.serve();
    give_away(&world, 0, 5);
    let refused = serving.schedule(&world.order(0, 1));
    let told = serving.until(&refused, "failed");
    assert!(told["fail_reason"].as_str().unwrap().contains("not the owner"), "{told}");
    assert!(told["withdrawal_id"].is_null(), "{told}");
    assert_eq!(world.nonce(0), 0, "no nonce is spent on what is known to fail");

    give_away(&world, 0, 0);
    let next = serving.schedule(&world.order(0, 2));
    serving.until_withdrawn(&[next]);
    assert_eq!(serving.withdrawal(&refused), told, "nobody said that it is to be tried again");

    let retried = serving.post(&format!("/withdrawals/{refused}/retry"), &json!({}));
    assert_eq!(retried.status, 200, "{retried:?}");
    serving.until_withdrawn(std::slice::from_ref(&refused));
    assert_eq!(world.paid(0), [2, 1]);
    let again = serving.post(&format!("/withdrawals/{refused}/retry"), &json!({}));
    assert_eq!(again.status, 409, "{again:?}");
}

#[test]
fn what_is_refused_when_it_is_mined_fails_with_the_reason_and_costs_its_nonce() {
    let world = World::new(1);
    world.anvil.stop_mining().unwrap();
    let serving = world.serve();
    let id = serving.schedule(&world.order(0, 1));
    serving.until(&id, "pending");
    give_away(&world, 0, 5);
    world.anvil.mine(1).unwrap();
    let told = serving.until(&id, "failed");
    assert!(told["fail_reason"].as_str().unwrap().contains("not the owner"), "{told}");
    assert_eq!((world.nonce(0), world.paid(0)), (1, vec![]));

    give_away(&world, 0, 0);
    world.anvil.start_mining().unwrap();
    serving.post(&format!("/withdrawals/{id}/retry"), &json!({}));
    let told = serving.until_withdrawn(&[id]).remove(0);
    assert_eq!(world.paid(0), [1]);
    assert_eq!(told["transactions"][0]["nonce"], 1, "{told}");
}

#[test]
fn what_waits_and_what_is_sent_can_be_cancelled() {
    let world = World::new(1);
    world.anvil.stop_mining().unwrap();
    let serving = world.serve();
    let ids = [1, 2, 3].map(|amount| serving.schedule(&world.order(0, amount)));
    serving.until(&ids[0], "pending");
    for id in &ids[..2] {
        let answer = serving.post(&format!("/withdrawals/{id}/cancel"), &json!({}));
        assert_eq!(answer.status, 202, "{answer:?}");
    }
    until("the empty transfer is sent", || {
        let told = serving.withdrawal(&ids[0]);
        told["state"] == "pending" && told["transactions"][1]["sent_at"].is_string()
    });
    world.anvil.start_mining().unwrap();
    world.anvil.mine(1).unwrap();
    for id in &ids[..2] {
        let told = serving.until(id, "failed");
        assert!(told["fail_reason"].as_str().unwrap().contains("cancelled"), "{told}");
    }
    serving.until_withdrawn(&ids[2..]);
    assert_eq!((world.paid(0), world.nonce(0)), (vec![3], 2));
}

#[test]
fn a_refusal_that_the_chain_forgets_holds_nobody_up() {
    let world = World::new(1);
    world.anvil.stop_mining().unwrap();
    let serving = world.serve();
    let refused = serving.schedule(&world.order(0, 1));
    serving.until(&refused, "pending");
    give_away(&world, 0, 5);
    world.anvil.mine(1).unwrap();
    serving.until(&refused, "failed");

    world.anvil.reorg(1).unwrap();
    give_away(&world, 0, 0);
    assert_eq!(world.nonce(0), 0, "the chain has forgotten it");
    world.anvil.start_mining().unwrap();
    let ids = [2, 3].map(|amount| serving.schedule(&world.order(0, amount)));
    serving.until_withdrawn(&ids);
    assert_eq!(world.paid(0), [2, 3], "what was told of as failed is not made after all");
}
