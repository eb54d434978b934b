use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_test_chain::Pool;
use grid_batch_withdrawals::NonceOutcome;
use serde_json::json;

use crate::harness::{Harness, SEND};

fn with_three_confirmations() -> Harness {
    Harness::with_options(|options| options.confirmations = 3)
}

fn withdrawn(withdrawal_id: &str) -> Option<NonceOutcome> {
    Some(NonceOutcome::Withdrawn { withdrawal_id: withdrawal_id.to_owned() })
}

/// Replaces the contract of the pool.
fn replace_pool_code(harness: &Harness, code: serde_json::Value) {
    harness.chain.rpc("anvil_setCode", json!([harness.pool.address(), code])).unwrap();
}

#[tokio::test]
async fn withdrawal_is_valid_until_it_is_final() {
    let harness = with_three_confirmations();
    let id = harness.send_withdrawal().await;
    for _ in 0..2 {
        harness.mine(1);
        assert_eq!(harness.status(id).await, LedgerStatus::Valid);
        assert_eq!(harness.evidence(id).await, Evidence::Present);
        let assigned = harness.nonce(id);
        let note = "mined in block 2, final with block 4".to_owned();
        assert_eq!((assigned.note, assigned.outcome), (Some(note), None));
    }
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.nonce(id).outcome, withdrawn("1"));
}

#[tokio::test]
async fn each_withdrawal_has_its_id_from_the_pool() {
    let harness = Harness::new();
    let first = harness.send_withdrawal().await;
    harness.mine(1);
    let second = harness.send_withdrawal().await;
    harness.mine(1);
    for (id, withdrawal_id) in [(second, "2"), (first, "1")] {
        assert_eq!(harness.status(id).await, LedgerStatus::Committed);
        assert_eq!(harness.nonce(id).outcome, withdrawn(withdrawal_id));
    }
}

#[tokio::test]
async fn same_bytes_are_sent_again_after_a_reorg() {
    let harness = with_three_confirmations();
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Valid);
    harness.chain.reorg(1).unwrap();
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    assert_eq!(harness.nonce(id).note, None);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    harness.accept(id).await;
    harness.mine(3);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.sent(), harness.hashes(id));
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn committed_withdrawal_is_sent_again_after_a_deep_reorg() {
    let harness = Harness::new();
    let first = harness.send_withdrawal().await;
    harness.mine(1);
    assert_eq!(harness.status(first).await, LedgerStatus::Committed);
    harness.chain.reorg(1).unwrap();
    let second = harness.send_withdrawal().await;
    assert_eq!(harness.nonce(second).nonce, 1);
    harness.mine(1);
    let hashes: Vec<_> = harness.polls().into_iter().map(|poll| poll.transaction_hash).collect();
    assert_eq!(hashes, [harness.hashes(first), harness.hashes(second)].concat());
}

#[tokio::test]
async fn reverted_withdrawal_is_invalid_with_the_pools_reason() {
    let harness = with_three_confirmations();
    let id = harness.send_withdrawal().await;
    harness.set_pool_owner(1);
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Valid);
    harness.mine(2);
    let reason = "the pool refused the withdrawal in block 2: not the owner";
    assert_eq!(harness.failure_reason(id).await, reason);
    assert_eq!(harness.nonce(id).outcome, Some(NonceOutcome::Reverted));
    // The result is the same if the outcome is stored but the status is not yet.
    assert_eq!(harness.failure_reason(id).await, reason);
    assert_eq!(harness.evidence(id).await, Evidence::Present);
    assert_eq!(harness.outcome(id).await, Outcome::Rejected);
    assert_eq!(harness.proxy.calls(SEND), 1);
}

#[tokio::test]
async fn reverted_withdrawal_without_a_reason_is_invalid() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    replace_pool_code(&harness, json!("0x60006000fd"));
    harness.mine(1);
    let reason = "the pool refused the withdrawal in block 2: no reason given";
    assert_eq!(harness.failure_reason(id).await, reason);
}

#[tokio::test]
async fn retry_of_a_reverted_withdrawal_takes_another_nonce() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    replace_pool_code(&harness, json!("0x60006000fd"));
    harness.mine(1);
    harness.failure_reason(id).await;
    harness.retry(id);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    assert_eq!(harness.refuse(id).await.outcome, Outcome::Rejected);
    assert_eq!(harness.nonce(id).nonce, 0, "the simulation uses no nonce");
    let other = Pool::deploy(&harness.chain, harness.admin()).unwrap();
    let code = harness.chain.rpc("eth_getCode", json!([other.address(), "latest"])).unwrap();
    replace_pool_code(&harness, code);
    harness.accept(id).await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    let outcome: Vec<_> =
        harness.store.nonces(id).into_iter().map(|it| (it.nonce, it.outcome)).collect();
    assert_eq!(outcome, [(0, Some(NonceOutcome::Reverted)), (1, withdrawn("1"))]);
}

#[tokio::test]
async fn mined_without_an_event_ends_and_is_never_signed_again() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    // It accepts every call and emits nothing.
    replace_pool_code(&harness, json!("0x00"));
    harness.mine(1);
    for _ in 0..2 {
        assert_eq!(harness.status(id).await, LedgerStatus::Committed);
        assert_eq!(harness.evidence(id).await, Evidence::Committed);
        let note = "mined in block 2, but the pool did not emit WithdrawPollCreated".to_owned();
        assert_eq!(harness.nonce(id).note, Some(note));
    }
    assert_eq!(harness.nonce(id).outcome, Some(NonceOutcome::WithoutEvent));
    harness.retry(id);
    assert_eq!(harness.outcome(id).await, Outcome::Committed);
    assert_eq!(harness.proxy.calls(SEND), 1);
}

#[tokio::test]
async fn final_transaction_is_kept_with_what_it_cost() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    let kept = harness.nonce(id).final_transaction.unwrap();
    let hash = format!("0x{}", grid_batch_core::Hex(&kept.hash));
    let receipt = harness.chain.rpc("eth_getTransactionReceipt", json!([hash])).unwrap();
    let number = |name: &str| {
        u64::from_str_radix(receipt[name].as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    };
    assert_eq!((kept.block, kept.gas_used), (2, Some(number("gasUsed"))));
    assert_eq!(kept.gas_price, Some(number("effectiveGasPrice").into()));
}

#[tokio::test]
async fn unsigned_withdrawal_is_not_reported() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
}
