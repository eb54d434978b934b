use std::time::Duration;

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::{Outcome, SubmissionAnswer};
use grid_batch_evm::{AccountScopeId, Address, EvmOptions, GasPrice, OracleOptions, PoolRules};
use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::{NonceOutcome, WithdrawalId};
use serde_json::json;

use crate::{
    harness::{Harness, SEND},
    oracle::oracle_returning,
};

const GWEI: u128 = 1_000_000_000;

/// A chain where gas costs 201 gwei: a base fee of 200 and a tip of 1.
fn at_201_gwei(set: impl FnOnce(&mut EvmOptions)) -> Harness {
    let harness = Harness::with_options(set);
    harness.chain.set_base_fee(200).unwrap();
    harness
}

/// Asserts that nothing was signed or sent, and the withdrawal is parked for the gate interval.
fn assert_parked(harness: &Harness, id: WithdrawalId, answer: &SubmissionAnswer, reason: &str) {
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    assert_eq!(answer.retry_after, Some(Duration::from_secs(5)));
    let message = answer.message.as_deref().unwrap();
    assert!(message.contains(reason), "{message}");
    assert_eq!(harness.store.nonces(id), []);
    assert_eq!(harness.proxy.calls(SEND), 0);
}

#[tokio::test]
async fn price_at_or_above_the_cap_parks() {
    for cap in [201 * GWEI, 201 * GWEI - 1] {
        let cap = GasPrice::from_wei(cap);
        let harness = at_201_gwei(|options| options.cap = cap);
        let id = harness.schedule("500");
        let answer = harness.send(id).await;
        let reason =
            format!("the gas price is 201 gwei, not below the cap of {cap} (source: node)");
        assert_parked(&harness, id, &answer, &reason);
    }
}

#[tokio::test]
async fn price_below_the_cap_bids_at_most_the_cap() {
    let cap = 201 * GWEI + 1;
    let harness = at_201_gwei(|options| options.cap = GasPrice::from_wei(cap));
    let id = harness.schedule("500");
    harness.accept(id).await;
    assert_eq!(harness.nonce(id).transactions[0].signed.max_fee, cap);
}

#[tokio::test]
async fn cap_of_a_pool_replaces_the_general_cap() {
    let mut harness = at_201_gwei(|_| {});
    let pool = harness.pool.address().parse().unwrap();
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    assert_parked(&harness, id, &answer, "the cap of 200 gwei");
    harness.restart_with(|options| options.pool_caps = vec![(pool, "300".parse().unwrap())]);
    harness.accept(id).await;
}

#[tokio::test]
async fn parked_withdrawal_continues_at_a_lower_price() {
    let harness = at_201_gwei(|_| {});
    let id = harness.schedule("500");
    assert_eq!(harness.outcome(id).await, Outcome::Parked);
    harness.chain.set_base_fee(198).unwrap();
    harness.accept(id).await;
    assert_eq!(harness.nonce(id).nonce, 0);
}

#[tokio::test]
async fn insufficient_funds_park() {
    let harness = Harness::new();
    harness.chain.set_balance(&harness.admin().address, 1_000).unwrap();
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    assert_parked(&harness, id, &answer, "has 0.000000000000001 coins of the chain");
    harness.chain.set_balance(&harness.admin().address, u128::MAX).unwrap();
    harness.accept(id).await;
}

#[tokio::test]
async fn oracle_is_asked_if_the_node_has_no_price() {
    let oracle = |gwei: &str| {
        let oracle = oracle_returning(gwei);
        let harness = Harness::with_options(|options| options.oracle = Some(oracle));
        harness.proxy.set("eth_feeHistory", Fault::status(500));
        harness
    };
    let harness = oracle("40.5");
    let id = harness.schedule("500");
    harness.accept(id).await;
    assert_eq!(harness.nonce(id).transactions[0].signed.max_fee, 81 * GWEI);

    let harness = oracle("200");
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    assert_parked(
        &harness,
        id,
        &answer,
        "the gas price is 200 gwei, not below the cap of 200 gwei",
    );
}

#[tokio::test]
async fn oracle_first_overrides_a_lower_node_price() {
    let harness = Harness::with_options(|options| {
        options.oracle = Some(oracle_returning("250"));
        options.oracle_first = true;
    });
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    assert_parked(
        &harness,
        id,
        &answer,
        "250 gwei, not below the cap of 200 gwei (source: oracle)",
    );
}

#[tokio::test]
async fn missing_price_parks_without_showing_secrets() {
    let oracle = OracleOptions::new("http://user:word@127.0.0.1:9/?key=secret", "/fast");
    let harness = Harness::with_options(|options| options.oracle = Some(oracle));
    harness.proxy.set("eth_feeHistory", Fault::status(500));
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    assert_parked(&harness, id, &answer, "the node failed: the node answered with HTTP status 500");
    let message = answer.message.unwrap();
    assert!(!message.contains("word") && !message.contains("secret"), "{message}");
}

#[tokio::test]
async fn price_gate_works_without_base_fees() {
    let mut harness = Harness::with(|chain| chain.hardfork = Some("berlin"), |_| {});
    let price = harness.chain.rpc("eth_gasPrice", json!([])).unwrap();
    let price = u128::from_str_radix(&price.as_str().unwrap()[2..], 16).unwrap();
    harness.restart_with(|options| options.cap = GasPrice::from_wei(price));
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    assert_parked(&harness, id, &answer, "not below the cap");
    harness.restart_with(|options| options.cap = GasPrice::from_wei(price + 1));
    harness.accept(id).await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}

/// A chain at 201 gwei with a cap of 100 gwei for the pool, and of 300 gwei for others.
fn with_low_cap_of_the_pool() -> Harness {
    let mut harness = at_201_gwei(|_| {});
    let pool = harness.pool.address().parse().unwrap();
    harness.restart_with(|options| {
        options.cap = "300".parse().unwrap();
        options.pool_caps = vec![(pool, "100".parse().unwrap())];
    });
    harness
}

#[tokio::test]
async fn caps_of_pools_of_other_gas_admins_do_not_count() {
    let mut harness = with_low_cap_of_the_pool();
    let other = AccountScopeId::new(31_337, Address::repeat_byte(8));
    let pools = [
        (harness.pool.address().parse().unwrap(), harness.scope()),
        (Address::repeat_byte(7), other),
    ];
    harness.restart_with(|options| options.rules = PoolRules::new(pools));
    let id = harness.schedule("500");
    assert_parked(&harness, id, &harness.send(id).await, "the cap of 100 gwei");
}

#[tokio::test]
async fn price_below_the_cap_of_another_pool_parks_one_pool() {
    let harness = with_low_cap_of_the_pool();
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    assert_eq!(
        (answer.outcome, answer.retry_after),
        (Outcome::PoolParked, Some(Duration::from_secs(5)))
    );
    let message = answer.message.unwrap();
    for part in ["not below the cap of 100 gwei", "; only this pool is parked"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!((harness.store.nonces(id).len(), harness.proxy.calls(SEND)), (0, 0));
    harness.chain.set_base_fee(300).unwrap();
    assert_parked(&harness, id, &harness.send(id).await, "the cap of 100 gwei");
}

/// If the order of nonces changed, it could be paid twice.
#[tokio::test]
async fn withdrawal_of_a_restored_store_parks_the_account() {
    let harness = with_low_cap_of_the_pool();
    let id = harness.schedule("500");
    let copy = harness.store.copy();
    harness.store.restore(&copy);
    assert_parked(&harness, id, &harness.send(id).await, "the cap of 100 gwei");
}

#[tokio::test]
async fn withdrawal_that_had_a_nonce_parks_the_account() {
    let mut harness = Harness::with_options(|options| options.confirmations = 1);
    let pool = harness.pool.address().parse().unwrap();
    let id = harness.send_withdrawal().await;
    harness.chain.drop_transaction(&harness.hashes(id)[0]).unwrap();
    harness.use_key_elsewhere();
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    harness.chain.set_base_fee(150).unwrap();
    harness.restart_with(|options| options.pool_caps = vec![(pool, "100".parse().unwrap())]);
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    assert_eq!(harness.nonce(id).outcome, Some(NonceOutcome::UsedElsewhere));
}
