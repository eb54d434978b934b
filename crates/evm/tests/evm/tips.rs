//! The tips that are offered to block producers.

use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::harness::Harness;

const GWEI: u128 = 1_000_000_000;

/// How many past blocks determine the tip.
const BLOCKS: usize = 20;

/// Mines a block with a transaction of another account that offers this tip.
fn other_account_offers(harness: &Harness, gwei: u128) {
    let accounts = harness.chain.accounts();
    let transfer = json!([{
        "from": accounts[5].address, "to": accounts[6].address, "value": "0x1", "gas": "0x5208",
        "maxFeePerGas": format!("{:#x}", 500 * GWEI),
        "maxPriorityFeePerGas": format!("{:#x}", gwei * GWEI),
    }]);
    harness.chain.rpc("eth_sendTransaction", transfer).unwrap();
    harness.mine(1);
}

/// The tip of a withdrawal, in gwei.
fn tip(harness: &Harness, id: WithdrawalId) -> u128 {
    harness.nonce(id).transactions[0].signed.tip / GWEI
}

/// The tips of this many withdrawals in a row, in gwei.
async fn pay(harness: &Harness, count: usize) -> Vec<u128> {
    let mut tips = Vec::new();
    for _ in 0..count {
        let id = harness.send_withdrawal().await;
        harness.mine(1);
        tips.push(tip(harness, id));
    }
    tips
}

#[tokio::test]
async fn few_transactions_of_others_do_not_set_the_tip() {
    let harness = Harness::new();
    other_account_offers(&harness, 120);
    other_account_offers(&harness, 120);
    assert_eq!(pay(&harness, 15).await, [1; 15]);
}

#[tokio::test]
async fn most_others_set_the_tip_up_to_the_limit() {
    let harness = Harness::with_options(|options| options.maximum_tip = "40".parse().unwrap());
    (0..BLOCKS).for_each(|_| other_account_offers(&harness, 30));
    assert_eq!(pay(&harness, 1).await, [30]);
    (0..BLOCKS).for_each(|_| other_account_offers(&harness, 120));
    assert_eq!(pay(&harness, 1).await, [40]);
}

#[tokio::test]
async fn own_payments_do_not_keep_the_tip_high() {
    let harness = Harness::new();
    (0..BLOCKS).for_each(|_| other_account_offers(&harness, 45));
    assert_eq!(pay(&harness, 1).await, [45]);
    let tips = pay(&harness, BLOCKS).await;
    assert_eq!((tips[0], tips[BLOCKS - 1]), (45, 1), "{tips:?}");
}
