//! Calls: transfers, creations of contracts and calls of any contract.

use std::time::Duration;

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::Outcome;
use grid_batch_evm::{AccountRules, AccountScopeId, EvmOptions, SendRule, parse_address};
use grid_batch_withdrawals::{Call, FinalTransaction, NonceOutcome, WithdrawalId};
use serde_json::{Value, json};

use crate::harness::Harness;

/// The declaration of the error of [`CONTRACT`].
const BROKEN: &str = "error Broken(uint256 reason)";

/// The code of a contract that emits a log with the topic 1, unless its slot 0 is set. Then it fails with `Broken(42)`.
const CONTRACT: &str = concat!(
    // Slot 0 decides.
    "600054600e57",
    // log1(0, 0, 1), and the end.
    "600160006000a100",
    "5b",
    // The selector of Broken(uint256), and 42.
    "63",
    "SELECTOR",
    "60e01b600052",
    "602a600452",
    "60246000fd",
);

/// The bytes of a contract with this code, as they are sent to create it.
fn creation(code: &str) -> String {
    let length = code.len() / 2;
    // Copies the code, which stands after these 11 bytes, to the memory, and returns it.
    format!("0x60{length:02x}80600b6000396000f3{code}")
}

fn contract() -> String {
    let selector = &alloy_primitives::keccak256("Broken(uint256)")[..4];
    creation(&CONTRACT.replace("SELECTOR", &alloy_primitives::hex::encode(selector)))
}

/// The account may send every call.
fn allow_calls(options: &mut EvmOptions) {
    let account = AccountScopeId::new(31_337, options.signers[0].address());
    let anything = vec![SendRule::Anything];
    options.calls = AccountRules::default().with_account("admin", account, anything);
}

fn harness() -> Harness {
    Harness::with_options(allow_calls)
}

fn transfer(harness: &Harness, value: &str) -> Call {
    Call {
        to: Some(parse_address(harness.beneficiary()).unwrap().to_string()),
        value: value.to_owned(),
        data: "0x".to_owned(),
        ..Call::default()
    }
}

fn call_of(contract: &str) -> Call {
    Call {
        to: Some(contract.to_owned()),
        value: "0".to_owned(),
        data: "0x01020304".to_owned(),
        abi: vec![BROKEN.to_owned()],
        ..Call::default()
    }
}

fn create(code: String) -> Call {
    Call { value: "0".to_owned(), data: code, ..Call::default() }
}

fn balance(harness: &Harness) -> u128 {
    let balance = harness.chain.rpc("eth_getBalance", json!([harness.beneficiary(), "latest"]));
    let balance: Value = balance.unwrap();
    u128::from_str_radix(&balance.as_str().unwrap()[2..], 16).unwrap()
}

fn result(harness: &Harness, id: WithdrawalId) -> FinalTransaction {
    harness.nonce(id).final_transaction.unwrap()
}

async fn execute(harness: &Harness, call: Call) -> WithdrawalId {
    let id = harness.schedule_call(call);
    harness.accept(id).await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    id
}

/// Creates the contract, and returns its address.
async fn deployed(harness: &Harness) -> String {
    let id = execute(harness, create(contract())).await;
    let Some(NonceOutcome::Executed { contract: Some(address) }) = harness.nonce(id).outcome else {
        panic!("{:?}", harness.nonce(id));
    };
    address
}

/// Sets or clears the slot with which the contract fails.
fn set_broken(harness: &Harness, contract: &str, is_broken: bool) {
    let word = |number: u8| format!("0x{number:064x}");
    let slot = json!([contract, word(0), word(is_broken.into())]);
    harness.chain.rpc("anvil_setStorageAt", slot).unwrap();
}

/// A call of a new contract that fails in its block, with the contract.
async fn failing_in_a_block(harness: &Harness) -> (String, WithdrawalId) {
    let contract = deployed(harness).await;
    let id = harness.schedule_call(call_of(&contract));
    harness.accept(id).await;
    set_broken(harness, &contract, true);
    harness.mine(1);
    (contract, id)
}

#[tokio::test]
async fn transfer_is_executed_once() {
    let harness = harness();
    let before = balance(&harness);
    let id = execute(&harness, transfer(&harness, "1000")).await;
    assert_eq!(balance(&harness), before + 1000);
    assert_eq!(harness.nonce(id).outcome, Some(NonceOutcome::Executed { contract: None }));
    let FinalTransaction { block, gas_used, logs, .. } = result(&harness, id);
    assert_eq!((block, gas_used, logs), (2, Some(21_000), vec![]));
    // An attempt after the end sends nothing.
    assert_eq!(harness.outcome(id).await, Outcome::Committed);
    assert_eq!(harness.sent().len(), 1);
}

#[tokio::test]
async fn contract_is_created_and_called() {
    let harness = harness();
    let contract = deployed(&harness).await;
    let code = harness.chain.rpc("eth_getCode", json!([contract, "latest"])).unwrap();
    assert!(code.as_str().unwrap().len() > 2, "{code}");
    let id = execute(&harness, call_of(&contract)).await;
    let logs = result(&harness, id).logs;
    assert_eq!((logs.len(), &logs[0].address), (1, &contract));
    assert_eq!(logs[0].topics, [format!("0x{:064x}", 1)]);
}

#[tokio::test]
async fn call_that_would_fail_uses_no_nonce() {
    let harness = harness();
    let contract = deployed(&harness).await;
    set_broken(&harness, &contract, true);
    let id = harness.schedule_call(call_of(&contract));
    let answer = harness.refuse_after(id, Outcome::Parked).await;
    assert_eq!(answer.outcome, Outcome::Rejected, "{answer:?}");
    let message = answer.message.unwrap();
    assert_eq!(message, "the transaction would fail: Broken(reason: 42)");
    assert_eq!(harness.store.nonces(id), []);
}

#[tokio::test]
async fn call_without_a_contract_at_its_address_fails() {
    let harness = harness();
    let id = harness.schedule_call(call_of(harness.beneficiary()));
    let answer = harness.refuse_after(id, Outcome::Parked).await;
    let message = format!("there is no contract at {}", harness.beneficiary());
    assert_eq!(answer.outcome, Outcome::Rejected);
    assert!(answer.message.unwrap().to_lowercase().contains(&message.to_lowercase()));
}

#[tokio::test]
async fn call_that_fails_in_a_block_has_the_declared_error() {
    let harness = harness();
    let (contract, id) = failing_in_a_block(&harness).await;
    let reason = harness.failure_reason(id).await;
    assert!(reason.starts_with("the transaction failed in block "), "{reason}");
    assert!(reason.ends_with(": Broken(reason: 42)"), "{reason}");
    assert_eq!(harness.nonce(id).outcome, Some(NonceOutcome::Reverted));
    // A retry has another nonce.
    set_broken(&harness, &contract, false);
    harness.retry(id);
    harness.accept(id).await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    let nonces: Vec<u64> = harness.store.nonces(id).iter().map(|it| it.nonce).collect();
    assert_eq!(nonces, [1, 2]);
}

#[tokio::test]
async fn gas_limit_of_the_request_is_used() {
    let harness = harness();
    let call = Call { gas_limit: Some(77_000), ..transfer(&harness, "1") };
    let id = harness.schedule_call(call);
    harness.accept(id).await;
    assert_eq!(harness.transaction(&harness.hashes(id)[0])["gas"], json!("0x12cc8"));
}

#[tokio::test]
async fn gas_limit_that_does_not_suffice_uses_no_nonce() {
    let harness = harness();
    let schedule =
        |limit| harness.schedule_call(Call { gas_limit: Some(limit), ..create(contract()) });
    let (low, high) = (schedule(30_000), schedule(u64::MAX / 2));
    let answers = [harness.refuse_after(low, Outcome::Parked).await, harness.send(high).await];
    for (answer, reason) in answers.into_iter().zip(["and it needs ", "a block has at most "]) {
        assert_eq!(answer.outcome, Outcome::Rejected, "{answer:?}");
        assert!(answer.message.unwrap().contains(reason));
    }
    assert_eq!([low, high].map(|id| harness.store.nonces(id).len()), [0, 0]);
}

#[tokio::test]
async fn call_that_is_allowed_no_more_is_not_signed() {
    let mut harness = harness();
    let id = harness.schedule_call(transfer(&harness, "1"));
    harness.restart_with(|options| options.calls = AccountRules::default());
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Rejected, "{answer:?}");
    assert_eq!(harness.store.nonces(id), []);
}

#[tokio::test]
async fn cancellation_may_pay_more_than_the_call() {
    let harness = harness();
    harness.proxy.require_bump(12);
    let call = Call { maximum_gas_price: Some(3_000_000_000), ..transfer(&harness, "1") };
    let id = harness.schedule_call(call);
    harness.accept(id).await;
    harness.chain.set_base_fee(50).unwrap();
    harness.cancel(id);
    for _ in 0..2 {
        harness.accept(id).await;
        let best = harness.nonce(id).transactions.pop().unwrap().signed;
        assert!(best.is_filler && best.max_fee > 50_000_000_000, "{best:?}");
        // The node has lost it.
        harness.chain.drop_transaction(harness.hashes(id).last().unwrap()).unwrap();
    }
    harness.accept(id).await;
    harness.mine(1);
    assert!(harness.failure_reason(id).await.starts_with("cancelled in block "));
}

/// A pool may be configured after a transaction to it was requested as a call.
#[tokio::test]
async fn lost_call_of_a_later_pool_is_adopted() {
    let harness = harness();
    let pool = parse_address(harness.pool.address()).unwrap().to_string();
    let amount = format!("{:064x}{:0>64}", 500, &harness.beneficiary()[2..]);
    let call = Call {
        to: Some(pool),
        value: "0".to_owned(),
        data: format!("0xf0854aac{}", amount.to_lowercase()),
        ..Call::default()
    };
    let id = harness.schedule_call(call);
    // The pool has a withdrawal that waits.
    harness.schedule("7");
    let copy = harness.store.copy();
    execute_scheduled(&harness, id).await;
    harness.store.restore(&copy);
    harness.send(id).await;
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!((harness.polls().len(), harness.nonce(id).nonce), (1, 0));
}

#[tokio::test]
async fn own_highest_price_parks_only_such_calls() {
    let harness = harness();
    let call = Call { maximum_gas_price: Some(1), ..transfer(&harness, "1") };
    let id = harness.schedule_call(call);
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::PoolParked, "{answer:?}");
    assert!(answer.message.unwrap().contains("not below the cap"));
    assert_eq!(harness.store.nonces(id), []);
    execute(&harness, transfer(&harness, "1")).await;
}

#[tokio::test]
async fn call_that_the_account_cannot_pay_is_parked() {
    let harness = harness();
    let id = harness.schedule_call(transfer(&harness, &"9".repeat(30)));
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    assert!(answer.message.unwrap().contains("coins of the chain"));
    assert_eq!(harness.store.nonces(id), []);
}

#[tokio::test]
async fn call_is_not_signed_after_its_deadline() {
    let harness = harness();
    let deadline = harness.now().plus(Duration::from_secs(60)).as_micros();
    let call = Call { deadline: Some(deadline), ..transfer(&harness, "1") };
    let (late, in_time) = (harness.schedule_call(call.clone()), harness.schedule_call(call));
    harness.accept(in_time).await;
    harness.advance_clock(Duration::from_secs(61));
    let answer = harness.send(late).await;
    assert_eq!(answer.outcome, Outcome::Rejected);
    let reason = "its deadline has passed before it was signed";
    assert_eq!(answer.message.as_deref(), Some(reason));
    // What is signed is followed to its end.
    harness.mine(1);
    assert_eq!(harness.status(in_time).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn cancelled_call_is_replaced_by_an_empty_transaction() {
    let harness = harness();
    let before = balance(&harness);
    let id = harness.schedule_call(transfer(&harness, "1000"));
    harness.accept(id).await;
    harness.cancel(id);
    harness.accept(id).await;
    harness.mine(1);
    let reason = harness.failure_reason(id).await;
    assert_eq!(reason, "cancelled in block 2; nothing was executed");
    assert_eq!(balance(&harness), before);
}

#[tokio::test]
async fn calls_of_all_kinds_are_signed_ahead() {
    let harness = Harness::with_options(|options| {
        allow_calls(options);
        options.in_flight = 4;
    });
    let contract = deployed(&harness).await;
    let before = balance(&harness);
    let calls = [
        transfer(&harness, "1"),
        call_of(&contract),
        create(contract_of_one_byte()),
        transfer(&harness, "10"),
        transfer(&harness, "100"),
    ];
    let ids = calls.map(|call| harness.schedule_call(call));
    harness.accept(ids[0]).await;
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Pending);
    let signed = ids.map(|id| harness.store.nonces(id).len());
    assert_eq!(signed, [1, 1, 1, 1, 0]);
    harness.mine(1);
    for id in &ids[..4] {
        assert_eq!(harness.status(*id).await, LedgerStatus::Committed);
    }
    assert_eq!(balance(&harness), before + 11);
}

fn contract_of_one_byte() -> String {
    creation("00")
}

#[tokio::test]
async fn lost_database_adopts_calls_that_were_executed() {
    let harness = harness();
    let before = balance(&harness);
    let calls = [transfer(&harness, "1000"), create(contract_of_one_byte())];
    let ids = calls.map(|call| harness.schedule_call(call));
    let copy = harness.store.copy();
    for id in ids {
        harness.accept(id).await;
        harness.mine(1);
        assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    }
    harness.store.restore(&copy);
    for id in ids {
        let answer = harness.send(id).await;
        assert_eq!(harness.status(id).await, LedgerStatus::Committed, "{answer:?}");
    }
    assert_eq!((balance(&harness), harness.sent().len()), (before + 1000, 2));
}

#[tokio::test]
async fn foreign_transaction_is_not_taken_for_a_call() {
    let harness = harness();
    let before = balance(&harness);
    let id = harness.schedule_call(transfer(&harness, "1000"));
    // It has another value.
    harness.use_key_elsewhere();
    execute_scheduled(&harness, id).await;
    assert_eq!(balance(&harness), before + 1001);
    assert_eq!(harness.nonce(id).nonce, 1);
}

async fn execute_scheduled(harness: &Harness, id: WithdrawalId) {
    harness.accept(id).await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

/// The result of the first one stays, and both are executed, each once.
#[tokio::test]
async fn final_call_is_sent_again_after_a_deep_reorg() {
    let harness = harness();
    let before = balance(&harness);
    let first = execute(&harness, transfer(&harness, "1000")).await;
    let stored = harness.nonce(first);
    harness.chain.reorg(1).unwrap();
    assert_eq!(balance(&harness), before);
    let second = harness.schedule_call(transfer(&harness, "70"));
    harness.accept(second).await;
    assert_eq!(harness.nonce(second).nonce, 1);
    harness.mine(1);
    assert_eq!(balance(&harness), before + 1070);
    assert_eq!(harness.status(second).await, LedgerStatus::Committed);
    assert_eq!(harness.nonce(first).final_transaction, stored.final_transaction);
    assert_eq!(harness.hashes(first).len(), 1, "the same bytes were sent");
}

/// The nonce of a call that failed in a block is filled after that block was dropped, so that it is never executed.
#[tokio::test]
async fn failed_call_is_not_executed_after_a_deep_reorg() {
    let harness = harness();
    let (contract, id) = failing_in_a_block(&harness).await;
    assert_eq!(harness.status(id).await, LedgerStatus::Invalid);
    harness.chain.reorg(1).unwrap();
    set_broken(&harness, &contract, false);
    let before = balance(&harness);
    let next = harness.schedule_call(transfer(&harness, "5"));
    harness.accept(next).await;
    harness.mine(1);
    assert_eq!(balance(&harness), before + 5);
    let range = json!([{"address": contract, "fromBlock": "0x0"}]);
    assert_eq!(harness.chain.rpc("eth_getLogs", range).unwrap(), json!([]));
}
