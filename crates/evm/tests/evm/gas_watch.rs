//! What is known about the gas of gas admins.

use std::time::Duration;

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::Outcome;
use grid_batch_evm::{
    AccountGas, Address, AllowedBeneficiaries, GasLimit, GasWatch, PoolRules, WatchedAccount,
};
use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::SigningStore;

use crate::harness::{Harness, SEND};

fn watch(harness: &Harness, low_balance: u64) -> GasWatch {
    let pools = vec![harness.pool.address().parse().unwrap()];
    let account = WatchedAccount { name: "treasury".to_owned(), account: harness.scope(), pools };
    harness.evm.gas_watch(vec![account], low_balance, Duration::from_secs(15))
}

fn account(watch: &GasWatch) -> AccountGas {
    watch.accounts().remove(0)
}

#[tokio::test]
async fn look_reads_prices_and_balances() {
    let harness = Harness::new();
    let watch = watch(&harness, 20);
    let unknown = account(&watch);
    assert_eq!((unknown.balance.value, unknown.price.value, unknown.is_low), (None, None, false));
    harness.chain.set_balance(&harness.admin().address, 7_000_000).unwrap();
    assert!(watch.look().await);
    let known = account(&watch);
    assert_eq!(known.balance.value.map(|wei| wei.to_string()).as_deref(), Some("7000000"));
    assert!(known.price.value.is_some() && known.pools[0].balance.value.is_some(), "{known:?}");
    assert_eq!((known.withdrawals_left, known.is_low), (Some(0), true));
    assert!(matches!(known.gas_limit, GasLimit::Assumed(_)));
}

#[tokio::test]
async fn failed_look_keeps_what_was_seen_with_its_age() {
    let harness = Harness::new();
    let watch = watch(&harness, 0);
    assert!(watch.look().await);
    let before = account(&watch);
    for method in ["eth_getBalance", "eth_feeHistory", "eth_gasPrice"] {
        harness.proxy.set(method, Fault::status(502));
    }
    harness.advance_clock(Duration::from_secs(40));
    assert!(!watch.look().await);
    let after = account(&watch);
    assert_eq!(
        (after.balance.value, after.price.value),
        (before.balance.value, before.price.value)
    );
    assert_eq!(after.balance.age, Some(Duration::from_secs(40)));
    assert!(after.balance.error.is_some() && after.price.error.is_some(), "{after:?}");
}

#[tokio::test]
async fn another_node_is_asked_if_one_fails() {
    let mut harness = Harness::new();
    harness.proxy.set("eth_getBalance", Fault::status(502));
    let (broken, good) = (harness.proxy.url().to_owned(), harness.chain.url().to_owned());
    harness.use_nodes(&[&broken, &good]);
    let watch = watch(&harness, 0);
    assert!(watch.look().await);
    let known = account(&watch);
    assert!(known.balance.value.is_some() && known.balance.error.is_none(), "{known:?}");
}

#[tokio::test]
async fn attempt_to_send_records_price_balance_and_gas() {
    let harness = Harness::new();
    let watch = watch(&harness, 20);
    harness.chain.set_base_fee(250).unwrap();
    let id = harness.schedule("5");
    assert_eq!(harness.outcome(id).await, Outcome::Parked);
    assert!(account(&watch).pools[0].above_cap_for.is_some());
    harness.chain.set_base_fee(10).unwrap();
    harness.accept(id).await;
    let known = account(&watch);
    assert_eq!(known.pools[0].above_cap_for, None);
    assert!(known.balance.value.is_some() && known.can_pay, "{known:?}");
    assert!(matches!(known.gas_limit, GasLimit::Simulated(gas) if gas > 21_000), "{known:?}");
}

#[tokio::test]
async fn beneficiary_that_is_not_allowed_is_rejected_unsigned() {
    let of_another = AllowedBeneficiaries::new([(None, Address::repeat_byte(7))]);
    let mut harness = Harness::with_options(|options| {
        options.rules = PoolRules::default().with_beneficiaries(of_another)
    });
    let id = harness.schedule("5");
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Rejected, "{answer:?}");
    assert!(answer.message.unwrap().contains("pools.*.beneficiaries"));
    assert_eq!((harness.store.nonces(id), harness.proxy.calls(SEND)), (vec![], 0));

    let beneficiary = harness.beneficiary().parse().unwrap();
    harness.restart_with(|options| {
        let allowed = AllowedBeneficiaries::new([(None, beneficiary)]);
        options.rules = PoolRules::default().with_beneficiaries(allowed);
    });
    harness.accept(id).await;
}

/// The nonce is settled while nodes show the transaction, so it does not matter if they are pruned later.
#[tokio::test]
async fn transaction_of_an_idle_account_is_settled() {
    let harness = Harness::new();
    let paid = harness.send_withdrawal().await;
    harness.mine(1);
    assert_eq!(harness.status(paid).await, LedgerStatus::Committed);
    let next = || harness.store.next_nonce(&harness.service_id()).unwrap();
    let watch = watch(&harness, 0);
    harness.use_key_elsewhere();
    let open = harness.schedule("1");
    assert!(watch.look().await);
    assert_eq!(next(), Some(1), "its own attempt settles it");
    harness.store.decide_invalid(open);
    assert!(watch.look().await);
    assert_eq!(next(), Some(2));
    let before = harness.proxy.log().len();
    assert!(watch.look().await);
    let looked: Vec<String> = harness.proxy.log().split_off(before);
    assert_eq!(
        looked.iter().filter(|it| *it == "eth_getTransactionCount").count(),
        1,
        "{looked:?}"
    );
    let id = harness.send_withdrawal().await;
    assert_eq!(harness.nonce(id).nonce, 2);
}
