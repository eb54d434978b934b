//! The gas price rises while withdrawals that were signed ahead are pending.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_evm::EvmOptions;
use grid_batch_withdrawals::WithdrawalId;

use crate::harness::Harness;

/// A chain with six withdrawals, four of which are pending at a base fee of 5 gwei, with max fees of 11 gwei.
async fn pending_at_a_low_price() -> (Harness, Vec<WithdrawalId>) {
    let harness = Harness::with_options(|options: &mut EvmOptions| {
        options.in_flight = 4;
        options.cap = "60".parse().unwrap();
    });
    harness.proxy.require_bump(12);
    harness.chain.set_base_fee(5).unwrap();
    let ids: Vec<WithdrawalId> = (0..6).map(|_| harness.schedule("500")).collect();
    harness.accept(ids[0]).await;
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Pending);
    assert_eq!(sent_nonces(&harness), [0, 1, 2, 3]);
    (harness, ids)
}

fn sent_nonces(harness: &Harness) -> Vec<u64> {
    harness.proxy.sent().iter().map(|sent| sent.nonce).collect()
}

/// Sets the base fee of the next block, and looks.
async fn look_at_base_fee(harness: &Harness, head: WithdrawalId, gwei: u64) {
    harness.chain.set_base_fee(gwei).unwrap();
    harness.status(head).await;
}

#[tokio::test]
async fn all_in_flight_get_higher_fees_in_one_look() {
    let (harness, ids) = pending_at_a_low_price().await;
    look_at_base_fee(&harness, ids[0], 20).await;
    assert_eq!(sent_nonces(&harness)[4..], [0, 1, 2, 3]);
    assert!(harness.proxy.sent()[4..].iter().all(|sent| sent.max_fee == 41_000_000_000));
    harness.status(ids[0]).await;
    assert_eq!(harness.proxy.sent().len(), 8, "they are raised once");
    harness.mine(1);
    assert_eq!(harness.polls().len(), 4);
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn all_that_the_cap_allows_go_when_the_price_falls() {
    let (harness, ids) = pending_at_a_low_price().await;
    look_at_base_fee(&harness, ids[0], 70).await;
    assert_eq!(harness.proxy.sent().len(), 4, "the price is above the cap");
    look_at_base_fee(&harness, ids[0], 50).await;
    assert_eq!(sent_nonces(&harness)[4..], [0, 1, 2, 3]);
    harness.mine(1);
    assert_eq!(harness.polls().len(), 4);
}

#[tokio::test]
async fn fee_near_the_cap_is_the_cap() {
    let (harness, ids) = pending_at_a_low_price().await;
    // Twice the base fee and the tip are 57 gwei, which could not be raised by an eighth.
    look_at_base_fee(&harness, ids[0], 28).await;
    assert!(harness.proxy.sent()[4..].iter().all(|sent| sent.max_fee == 60_000_000_000));
}

#[tokio::test]
async fn price_that_falls_is_noticed_by_the_next_look() {
    let harness = Harness::with_options(|options: &mut EvmOptions| options.in_flight = 4);
    let ids: Vec<WithdrawalId> = (0..3).map(|_| harness.schedule("500")).collect();
    harness.accept(ids[0]).await;
    look_at_base_fee(&harness, ids[0], 300).await;
    assert_eq!(sent_nonces(&harness), [0]);
    look_at_base_fee(&harness, ids[0], 100).await;
    assert_eq!(sent_nonces(&harness), [0, 0, 1, 2]);
}

#[tokio::test]
async fn no_fee_is_raised_behind_a_cancelled_withdrawal() {
    let (harness, ids) = pending_at_a_low_price().await;
    harness.cancel(ids[2]);
    look_at_base_fee(&harness, ids[0], 20).await;
    assert_eq!(sent_nonces(&harness)[4..], [0, 1]);
}

#[tokio::test]
async fn funds_limit_what_is_raised() {
    let (harness, ids) = pending_at_a_low_price().await;
    let gas = 120_000;
    let (old, new) = (11_000_000_000, 41_000_000_000_u128);
    // Enough for the four transactions and slightly more than two replacements.
    let balance = gas * (4 * old + 2 * (new - old));
    harness.chain.set_balance(&harness.admin().address, balance).unwrap();
    look_at_base_fee(&harness, ids[0], 20).await;
    let raised = sent_nonces(&harness).len() - 4;
    assert!((1..4).contains(&raised), "{raised} are raised");
}
