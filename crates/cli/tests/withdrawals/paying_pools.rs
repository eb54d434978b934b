//! The pools that move funds: `contracts/NativePool.sol` and `contracts/TokenPool.sol`.

use std::{fs, path::Path};

use grid_batch_test_chain::Pool;
use serde_json::{Value, json};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

/// Refuses every payment: its code is `revert(0, 0)`.
const REFUSES: (&str, &str) = ("0x00000000000000000000000000000000000e0001", "0x60006000fd");
/// Uses all gas that it gets: its code is an endless loop.
const NEVER_ENDS: (&str, &str) = ("0x00000000000000000000000000000000000e0002", "0x5b600056");
const TOKEN: &str = include_str!("../../../test-chain/contract/TestToken.json");

fn compiled(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contracts");
    fs::read_to_string(folder.join(name).with_extension("json")).unwrap()
}

fn native_pool() -> WithdrawalHarness {
    let mut harness = WithdrawalHarness::new(1);
    let owner = &harness.anvil.accounts()[0].address;
    let pool = harness.anvil.deploy(&compiled("NativePool"), &[owner]).unwrap();
    harness.pools = vec![Pool::at(pool)];
    harness
}

/// A pool with 1,000 of a token, and the token.
fn token_pool(returns_nothing: bool) -> (WithdrawalHarness, String) {
    let mut harness = WithdrawalHarness::new(1);
    let accounts = harness.anvil.accounts();
    let (owner, holder) = (accounts[0].address.as_str(), accounts[1].address.as_str());
    let arguments = [holder, "3e8", if returns_nothing { "1" } else { "0" }];
    let token = harness.anvil.deploy(TOKEN, &arguments).unwrap();
    let pool = harness.anvil.deploy(&compiled("TokenPool"), &[owner, &token]).unwrap();
    // transfer(address,uint256): 1,000 to the pool.
    let data = format!("0xa9059cbb{:0>64}{:064x}", &pool[2..], 1_000);
    let transfer = json!([{"from": holder, "to": token, "data": data}]);
    harness.anvil.rpc("eth_sendTransaction", transfer).unwrap();
    harness.pools = vec![Pool::at(pool)];
    (harness, token)
}

fn balance(harness: &WithdrawalHarness, address: &str) -> String {
    let balance = harness.anvil.rpc("eth_getBalance", json!([address, "latest"])).unwrap();
    balance.as_str().unwrap().to_owned()
}

fn tokens(harness: &WithdrawalHarness, token: &str, address: &str) -> u64 {
    // balanceOf(address)
    let data = format!("0x70a08231{:0>64}", &address[2..]);
    let call = json!([{"to": token, "data": data}, "latest"]);
    let word = harness.anvil.rpc("eth_call", call).unwrap();
    u64::from_str_radix(&word.as_str().unwrap()[2..], 16).unwrap()
}

fn withdrawal_to(harness: &WithdrawalHarness, beneficiary: &str, amount: u64) -> Value {
    let mut withdrawal = harness.withdrawal_request(0, amount);
    withdrawal["beneficiary"] = beneficiary.into();
    withdrawal
}

fn beneficiary(withdrawal: &Value) -> &str {
    withdrawal["beneficiary"].as_str().unwrap()
}

/// The withdrawal fails with these words, before anything was signed.
#[track_caller]
fn assert_fails(server: &WithdrawalServer, withdrawal: &Value, words: &str) {
    let failed = server.wait_for_state(&server.schedule(withdrawal), "failed");
    assert!(failed["fail_reason"].as_str().unwrap().contains(words), "{failed}");
    assert_eq!(failed["transactions"], json!([]), "{failed}");
}

#[test]
fn native_pool_pays_coins() {
    let harness = native_pool();
    harness.anvil.set_balance(harness.pools[0].address(), 100).unwrap();
    let server = harness.serve();
    let withdrawal = harness.withdrawal_request(0, 70);
    let ids = [server.schedule(&withdrawal)];
    server.wait_until_withdrawn(&ids);
    assert_eq!(balance(&harness, beneficiary(&withdrawal)), "0x46");
    assert_eq!(balance(&harness, harness.pools[0].address()), "0x1e");
    assert_fails(&server, &harness.withdrawal_request(0, 31), "the pool has too little");
}

#[test]
fn native_pool_survives_hostile_beneficiaries() {
    let harness = native_pool();
    harness.anvil.set_balance(harness.pools[0].address(), 100).unwrap();
    for (address, code) in [REFUSES, NEVER_ENDS] {
        harness.anvil.rpc("anvil_setCode", json!([address, code])).unwrap();
    }
    let server = harness.serve();
    for (address, _) in [REFUSES, NEVER_ENDS] {
        let withdrawal = withdrawal_to(&harness, address, 10);
        assert_fails(&server, &withdrawal, "the beneficiary refuses the payment");
    }
    server.wait_until_withdrawn(&[server.schedule(&harness.withdrawal_request(0, 10))]);
    assert_eq!(balance(&harness, harness.pools[0].address()), "0x5a");
}

#[test]
fn token_pool_pays_tokens() {
    for returns_nothing in [false, true] {
        let (harness, token) = token_pool(returns_nothing);
        let server = harness.serve();
        let withdrawal = harness.withdrawal_request(0, 900);
        server.wait_until_withdrawn(&[server.schedule(&withdrawal)]);
        assert_eq!(tokens(&harness, &token, beneficiary(&withdrawal)), 900);
        assert_eq!(tokens(&harness, &token, harness.pools[0].address()), 100);
        let too_much = harness.withdrawal_request(0, 101);
        assert_fails(&server, &too_much, "the token refuses the transfer");
    }
}
