//! Withdrawals that are signed and sent before it is their turn.

use std::time::Duration;

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::Outcome;
use grid_batch_evm::{Address, EvmOptions, GasPrice};
use grid_batch_test_chain::{Fault, Pool};
use grid_batch_withdrawals::{NonceOutcome, WithdrawalId};
use serde_json::json;

use crate::harness::{Harness, RESEND_AFTER, SEND};

/// At most this many are in flight.
const IN_FLIGHT: usize = 4;

fn set_in_flight(options: &mut EvmOptions) {
    options.in_flight = IN_FLIGHT;
}

fn harness() -> Harness {
    Harness::with_options(set_in_flight)
}

fn schedule(harness: &Harness, count: usize) -> Vec<WithdrawalId> {
    (1..=count).map(|amount| harness.schedule(&amount.to_string())).collect()
}

/// Schedules withdrawals, sends the first, and asks for its status.
async fn send_first(harness: &Harness, count: usize) -> Vec<WithdrawalId> {
    let ids = schedule(harness, count);
    harness.accept(ids[0]).await;
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Pending);
    ids
}

/// The nonces of withdrawals, as far as they have one.
fn nonces(harness: &Harness, ids: &[WithdrawalId]) -> Vec<Option<u64>> {
    ids.iter().map(|id| harness.store.nonces(*id).first().map(|it| it.nonce)).collect()
}

#[tokio::test]
async fn next_withdrawals_are_sent_in_order_up_to_the_limit() {
    let harness = harness();
    let ids = send_first(&harness, 6).await;
    assert_eq!(nonces(&harness, &ids), [Some(0), Some(1), Some(2), Some(3), None, None]);
    let sent: Vec<u64> = harness.proxy.sent().iter().map(|sent| sent.nonce).collect();
    assert_eq!(sent, [0, 1, 2, 3]);
    harness.status(ids[0]).await;
    assert_eq!(harness.proxy.sent().len(), 4, "something was sent twice");
}

/// A parked withdrawal is taken only while no other withdrawal has a nonce.
#[tokio::test]
async fn nothing_is_signed_ahead_of_a_parked_one_whose_gate_is_open() {
    let mut harness = harness();
    let parked = Address::repeat_byte(7);
    harness.store.set_due_pools(&[&parked.to_string()]);
    let ids = send_first(&harness, 2).await;
    assert_eq!(nonces(&harness, &ids), [Some(0), None]);
    harness.restart_with(|options| options.pool_caps = vec![(parked, GasPrice::from_wei(1))]);
    harness.status(ids[0]).await;
    assert_eq!(nonces(&harness, &ids), [Some(0), Some(1)]);
}

#[tokio::test]
async fn all_that_are_final_are_closed_with_the_first() {
    let harness = harness();
    let ids = send_first(&harness, 6).await;
    harness.mine(1);
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Committed);
    let calls = harness.proxy.log().len();
    for id in &ids[1..4] {
        let outcome = harness.nonce(*id).outcome.unwrap();
        assert!(matches!(outcome, NonceOutcome::Withdrawn { .. }), "{outcome:?}");
        assert_eq!(harness.outcome(*id).await, Outcome::Committed);
    }
    assert_eq!(harness.proxy.log().len(), calls, "the node was asked about what is stored");
    assert_eq!(nonces(&harness, &ids[4..]), [Some(4), Some(5)]);
    let amounts: Vec<String> = harness.polls().into_iter().map(|poll| poll.amount).collect();
    assert_eq!(amounts, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn refused_withdrawal_ends_those_that_are_signed() {
    let harness = harness();
    let other = Pool::deploy(&harness.chain, &harness.chain.accounts()[1]).unwrap();
    let first = harness.schedule("1");
    let second = harness.schedule("2");
    let refused = harness.schedule_at(other.address(), "3");
    let last = harness.schedule("4");
    harness.accept(first).await;
    harness.status(first).await;
    let ids = [first, second, refused, last];
    assert_eq!(nonces(&harness, &ids), [Some(0), Some(1), None, None]);
    let estimates = harness.proxy.calls("eth_estimateGas");
    harness.status(first).await;
    assert_eq!(harness.proxy.calls("eth_estimateGas"), estimates, "it was simulated again at once");
    harness.mine(1);
    harness.status(first).await;
    assert_eq!(harness.outcome(second).await, Outcome::Committed);
    assert_eq!(harness.refuse(refused).await.outcome, Outcome::Rejected);
    harness.accept(last).await;
    assert_eq!(harness.nonce(last).nonce, 2);
}

#[tokio::test]
async fn nothing_is_signed_ahead_at_a_price_above_the_cap() {
    let harness = harness();
    let ids = schedule(&harness, 3);
    harness.accept(ids[0]).await;
    harness.chain.set_base_fee(300).unwrap();
    harness.status(ids[0]).await;
    assert_eq!(nonces(&harness, &ids), [Some(0), None, None]);
}

#[tokio::test]
async fn funds_limit_what_is_signed_ahead() {
    let harness = harness();
    let ids = schedule(&harness, 4);
    harness.accept(ids[0]).await;
    let sent = &harness.proxy.sent()[0];
    // Enough for slightly more than two transactions.
    let gas = 120_000;
    harness.chain.set_balance(&harness.admin().address, sent.max_fee * gas * 2).unwrap();
    harness.status(ids[0]).await;
    let signed = nonces(&harness, &ids).into_iter().flatten().count();
    assert!((1..4).contains(&signed), "{signed} are signed");
}

#[tokio::test]
async fn cancelled_withdrawal_is_not_signed_ahead() {
    let harness = harness();
    let ids = schedule(&harness, 4);
    harness.cancel(ids[2]);
    harness.accept(ids[0]).await;
    harness.status(ids[0]).await;
    assert_eq!(nonces(&harness, &ids), [Some(0), Some(1), None, None]);
}

#[tokio::test]
async fn lost_transactions_are_sent_again_when_they_are_due() {
    let harness = harness();
    let ids = send_first(&harness, 4).await;
    let dropped = harness.hashes(ids[2]).remove(0);
    harness.chain.drop_transaction(&dropped).unwrap();
    harness.status(ids[0]).await;
    assert_eq!(harness.proxy.sent().len(), 4, "it was sent again at once");
    harness.advance_clock(RESEND_AFTER + Duration::from_secs(1));
    harness.status(ids[0]).await;
    let again: Vec<String> = harness.proxy.sent()[4..].iter().map(|it| it.hash.clone()).collect();
    assert!(again.contains(&dropped), "{again:?}");
    harness.mine(1);
    assert_eq!(harness.polls().len(), 4);
}

#[tokio::test]
async fn signed_and_not_sent_is_sent_at_the_next_look() {
    let mut harness = harness();
    let ids = schedule(&harness, 3);
    harness.accept(ids[0]).await;
    harness.proxy.set(SEND, Fault::NotForwarded);
    harness.status(ids[0]).await;
    assert_eq!(nonces(&harness, &ids), [Some(0), Some(1), Some(2)]);
    harness.proxy.clear();
    // After a restart, it is not known when they were sent.
    harness.restart_with(|_| {});
    harness.status(ids[0]).await;
    harness.advance_clock(RESEND_AFTER + Duration::from_secs(1));
    harness.status(ids[0]).await;
    harness.mine(1);
    assert_eq!(harness.polls().len(), 3);
}

/// They may be payments that are missing because the database is an older copy.
#[tokio::test]
async fn nothing_is_signed_while_unknown_transactions_are_pending() {
    let harness = harness();
    let ids = schedule(&harness, 2);
    let copy = harness.store.copy();
    harness.accept(ids[0]).await;
    harness.status(ids[0]).await;
    harness.store.restore(&copy);
    let answer = harness.send(ids[1]).await;
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    let message = answer.message.unwrap();
    for part in ["2 pending transactions of the gas admin", "use up nonce 0 with"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(nonces(&harness, &ids), [None, None]);
}

#[tokio::test]
async fn key_used_elsewhere_ends_signing_ahead() {
    let harness = harness();
    let ids = schedule(&harness, 3);
    harness.accept(ids[0]).await;
    let (admin, to) = (&harness.admin().address, harness.beneficiary());
    let transfer = json!([{"from": admin, "to": to, "value": "0x1", "gas": "0x5208"}]);
    harness.chain.rpc("eth_sendTransaction", transfer).unwrap();
    harness.status(ids[0]).await;
    assert_eq!(nonces(&harness, &ids), [Some(0), None, None]);
}
