//! What clients are told, over the whole way.

use std::{collections::BTreeSet, thread};

use serde_json::json;

use crate::world::{Serving, World, tally};

#[test]
fn a_withdrawal_is_promised_at_once_and_told_of_to_its_end() {
    let world = World::new(1);
    world.anvil.stop_mining().unwrap();
    let serving = world.serve();
    let answer = serving.post("/withdrawals", &world.order(0, 12));
    assert_eq!(answer.status, 201, "{answer:?}");
    let scheduled = answer.json();
    assert!(scheduled["withdrawal_id"].is_null() && scheduled["fail_reason"].is_null());
    assert_eq!(scheduled["amount"], "12");

    let id = scheduled["id"].as_str().unwrap().to_owned();
    let pending = serving.until(&id, "pending");
    assert!(pending["waits_for"].is_string(), "{pending}");
    world.anvil.mine(1).unwrap();
    let told = serving.until_withdrawn(&[id]).remove(0);
    assert_eq!(told["withdrawal_id"], world.polls(0)[0].id.as_str());
    assert!(told["waits_for"].is_null() && told["ended_at"].is_string(), "{told}");
    let listed = serving.get("/withdrawals").json();
    assert_eq!(listed["data"][0]["id"], told["id"], "{listed}");
}

#[test]
fn a_request_that_is_repeated_with_its_key_is_one_withdrawal() {
    let world = World::new(1);
    let serving = world.serve();
    let mut order = world.order(0, 5);
    order["idempotency_key"] = json!("invoice 5");
    let ids: BTreeSet<String> = (0..3).map(|_| serving.schedule(&order)).collect();
    assert_eq!(ids.len(), 1);
    serving.until_withdrawn(&ids.into_iter().collect::<Vec<_>>());
    serving.schedule(&order);
    order["amount"] = json!("6");
    assert_eq!(serving.post("/withdrawals", &order).status, 409);
    assert_eq!(world.paid(0), [5]);
}

#[test]
fn a_repeated_request_is_the_same_after_its_pool_was_given_to_another_gas_admin() {
    let world = World::new(2);
    let serving = world.serve();
    let mut order = world.order(0, 1);
    order["idempotency_key"] = json!("once");
    let id = serving.schedule(&order);
    serving.until(&id, "withdrawn");
    serving.program.kill();
    let [first, second] = [0, 1].map(|pool: usize| world.pools[pool].address());
    let mut command = world.command(&[]);
    command.env("GRID_BATCH_EVM_POOLS", format!("{first}=admin1,{second}=admin1"));
    let serving = Serving::start(command);
    assert_eq!(serving.schedule(&order), id);
    assert_eq!(world.paid(0), [1]);
}

#[test]
fn a_reward_is_paid_once_to_a_member_however_many_claim_it_at_once() {
    let world = World::new(1);
    let serving = world.serve();
    let reward = json!({"pool": world.pools[0].address(), "amount": "9", "once_per_member": true});
    let reward = serving.post("/rewards", &reward);
    assert_eq!(reward.status, 201, "{reward:?}");
    let id = reward.json()["id"].as_str().unwrap().to_owned();
    let member = json!({"beneficiary": format!("0x{:040x}", 0xabc)});
    let paths = [format!("/rewards/{id}/claim"), format!("/rewards/{id}/give")];
    let statuses = thread::scope(|scope| {
        let claims: Vec<_> = (0..16)
            .map(|number| {
                scope.spawn({
                    let (serving, path, member) = (&serving, &paths[number % 2], &member);
                    move || serving.post(path, member)
                })
            })
            .collect();
        tally(claims.into_iter().map(|claim| claim.join().unwrap().status))
    });
    assert_eq!(statuses, [(201, 1), (409, 15)].into());
    let listed = serving.get("/withdrawals").json();
    let ids: Vec<String> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 1, "{listed}");
    serving.until_withdrawn(&ids);
    assert_eq!(world.paid(0), [9]);
}

#[test]
fn batches_of_other_ledgers_are_not_taken() {
    let world = World::new(1);
    let serving = world.serve();
    let answer = serving.post("/batches", &json!([]));
    assert_eq!(answer.status, 404, "{answer:?}");
    assert!(answer.text.contains("withdrawals"), "{answer:?}");
}
