use std::time::Duration;

use grid_batch_core::{LedgerStatus, Outcome, SubmissionAnswer};
use grid_batch_evm::{EvmOptions, GasPrice, OracleOptions};
use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::{
    oracle::oracle_that_says,
    world::{SEND, World},
};

const GWEI: u128 = 1_000_000_000;

/// A chain where gas costs 201 gwei: 200 for nobody, and one for the miner.
fn at_201_gwei(set: impl FnOnce(&mut EvmOptions)) -> World {
    let world = World::with_options(set);
    world.chain.set_base_fee(200).unwrap();
    world
}

/// Nothing was signed or sent, and it is to be looked at again at the gate's pace.
fn assert_parked(world: &World, id: WithdrawalId, answer: &SubmissionAnswer, why: &str) {
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    assert_eq!(answer.retry_after, Some(Duration::from_secs(5)));
    let message = answer.message.as_deref().unwrap();
    assert!(message.contains(why), "{message}");
    assert_eq!(world.store.nonces(id), []);
    assert_eq!(world.proxy.calls(SEND), 0);
}

#[tokio::test]
async fn a_price_at_the_cap_or_above_it_parks_and_costs_no_nonce() {
    for cap in [201 * GWEI, 201 * GWEI - 1] {
        let cap = GasPrice::from_wei(cap);
        let world = at_201_gwei(|options| options.cap = cap);
        let id = world.schedule("500");
        let answer = world.send(id).await;
        let why = format!("the gas price is 201 gwei, not below the cap of {cap} (by the node)");
        assert_parked(&world, id, &answer, &why);
    }
}

#[tokio::test]
async fn a_price_one_wei_below_the_cap_is_paid_and_never_more_than_the_cap() {
    let cap = 201 * GWEI + 1;
    let world = at_201_gwei(|options| options.cap = GasPrice::from_wei(cap));
    let id = world.schedule("500");
    world.accept(id).await;
    assert_eq!(world.nonce(id).transactions[0].signed.max_fee, cap);
}

#[tokio::test]
async fn a_pools_own_cap_stands_in_place_of_the_other() {
    let mut world = at_201_gwei(|_| {});
    let pool = world.pool.address().parse().unwrap();
    let id = world.schedule("500");
    let answer = world.send(id).await;
    assert_parked(&world, id, &answer, "the cap of 200 gwei");
    world.restart_with(|options| options.pool_caps = vec![(pool, "300".parse().unwrap())]);
    world.accept(id).await;
}

#[tokio::test]
async fn a_withdrawal_goes_on_when_the_price_comes_down() {
    let world = at_201_gwei(|_| {});
    let id = world.schedule("500");
    assert_eq!(world.outcome(id).await, Outcome::Parked);
    world.chain.set_base_fee(198).unwrap();
    world.accept(id).await;
    assert_eq!(world.nonce(id).nonce, 0);
}

#[tokio::test]
async fn an_account_that_cannot_pay_the_gas_parks_and_says_so() {
    let world = World::new();
    world.chain.set_balance(&world.admin().address, 1_000).unwrap();
    let id = world.schedule("500");
    let answer = world.send(id).await;
    assert_parked(&world, id, &answer, "has 0.000000000000001 of the chain's coin");
    world.chain.set_balance(&world.admin().address, u128::MAX).unwrap();
    world.accept(id).await;
}

#[tokio::test]
async fn where_the_node_knows_no_price_the_oracle_is_asked() {
    let oracle = |gwei: &str| {
        let oracle = oracle_that_says(gwei);
        let world = World::with_options(|options| options.oracle = Some(oracle));
        world.proxy.set("eth_feeHistory", Fault::status(500));
        world
    };
    let world = oracle("40.5");
    let id = world.schedule("500");
    world.accept(id).await;
    assert_eq!(world.nonce(id).transactions[0].signed.max_fee, 81 * GWEI);

    let world = oracle("200");
    let id = world.schedule("500");
    let answer = world.send(id).await;
    assert_parked(&world, id, &answer, "the gas price is 200 gwei, not below the cap of 200 gwei");
}

#[tokio::test]
async fn an_oracle_that_comes_first_counts_though_the_node_is_cheaper() {
    let world = World::with_options(|options| {
        options.oracle = Some(oracle_that_says("250"));
        options.oracle_first = true;
    });
    let id = world.schedule("500");
    let answer = world.send(id).await;
    assert_parked(&world, id, &answer, "250 gwei, not below the cap of 200 gwei (by the oracle)");
}

#[tokio::test]
async fn without_any_price_it_is_parked_and_no_secret_is_told() {
    let url = "http://user:word@127.0.0.1:9/?key=secret".to_owned();
    let oracle = OracleOptions { url, pointer: "/fast".to_owned() };
    let world = World::with_options(|options| options.oracle = Some(oracle));
    world.proxy.set("eth_feeHistory", Fault::status(500));
    let id = world.schedule("500");
    let answer = world.send(id).await;
    assert_parked(
        &world,
        id,
        &answer,
        "no price to be had: the node answered with HTTP status 500",
    );
    let message = answer.message.unwrap();
    assert!(!message.contains("word") && !message.contains("secret"), "{message}");
}

#[tokio::test]
async fn a_chain_without_base_fees_is_gated_by_its_one_price() {
    let mut world = World::with(|chain| chain.legacy = true, |_| {});
    let price = world.chain.rpc("eth_gasPrice", json!([])).unwrap();
    let price = u128::from_str_radix(&price.as_str().unwrap()[2..], 16).unwrap();
    world.restart_with(|options| options.cap = GasPrice::from_wei(price));
    let id = world.schedule("500");
    let answer = world.send(id).await;
    assert_parked(&world, id, &answer, "not below the cap");
    world.restart_with(|options| options.cap = GasPrice::from_wei(price + 1));
    world.accept(id).await;
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 1);
}
