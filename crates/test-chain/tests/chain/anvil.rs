use std::{
    env,
    io::{BufRead, BufReader},
    net::TcpStream,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use grid_batch_test_chain::{Anvil, AnvilOptions, Mining, Pool};
use serde_json::{Value, json};

use crate::{
    wait::wait_until,
    wallet::{Proposal, receipt, refusal, send},
};

/// A chain whose blocks are asked for, and a pool of its first account.
fn chain_with_pool() -> (Anvil, Pool) {
    let chain =
        Anvil::start(&AnvilOptions { mining: Mining::Manual, ..Default::default() }).unwrap();
    let pool = Pool::deploy(&chain, &chain.accounts()[0]).unwrap();
    (chain, pool)
}

fn gas_price_in_gwei(chain: &Anvil) -> u64 {
    let price = chain.rpc("eth_gasPrice", json!([])).unwrap();
    u64::from_str_radix(&price.as_str().unwrap()[2..], 16).unwrap() / 1_000_000_000
}

fn transaction_count(chain: &Anvil, address: &str) -> Value {
    chain.rpc("eth_getTransactionCount", json!([address, "latest"])).unwrap()
}

#[test]
fn chains_are_as_they_are_asked_for() {
    let chain = Anvil::start(&AnvilOptions {
        chain_id: Some(137),
        accounts: Some(3),
        base_fee_gwei: Some(300),
        ..Default::default()
    })
    .unwrap();
    assert_eq!(chain.rpc("eth_chainId", json!([])).unwrap(), "0x89");
    assert_eq!(chain.accounts().len(), 3);
    assert_eq!(gas_price_in_gwei(&chain), 301);
    assert!(chain.is_mining().unwrap());

    let legacy = Anvil::start(&AnvilOptions { legacy: true, ..Default::default() }).unwrap();
    let block = legacy.rpc("eth_getBlockByNumber", json!(["latest", false])).unwrap();
    assert_eq!(block["baseFeePerGas"], Value::Null);
}

#[test]
fn options_that_anvil_refuses_are_said() {
    let options = AnvilOptions { accounts: Some(usize::MAX), ..Default::default() };
    let error = Anvil::start(&options).unwrap_err();
    assert_eq!(error.to_string(), "cannot start anvil");
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(!reason.is_empty(), "{reason}");
}

#[test]
fn the_price_goes_where_it_is_driven_and_stays() {
    let (chain, _) = chain_with_pool();
    chain.set_base_fee(200).unwrap();
    assert_eq!(gas_price_in_gwei(&chain), 201);
    assert_eq!(gas_price_in_gwei(&chain), 201);
    chain.set_base_fee(1).unwrap();
    assert_eq!(gas_price_in_gwei(&chain), 2);
}

#[test]
fn a_price_sinks_by_itself_with_every_block() {
    let (chain, _) = chain_with_pool();
    chain.set_base_fee(800).unwrap();
    chain.mine(2).unwrap();
    assert_eq!(gas_price_in_gwei(&chain), 701 - 88);
}

#[test]
fn a_transaction_that_pays_too_little_is_stuck_until_it_is_replaced() {
    let (chain, pool) = chain_with_pool();
    let owner = &chain.accounts()[0];
    let cheap = send(&chain, &Proposal::new(0).at_gwei(3, 1).signed(owner, &pool)).unwrap();
    chain.set_base_fee(500).unwrap();
    chain.mine(1).unwrap();
    assert_eq!(receipt(&chain, &cheap), Value::Null);

    let dear = send(&chain, &Proposal::new(0).at_gwei(700, 2).signed(owner, &pool)).unwrap();
    chain.mine(1).unwrap();
    assert_eq!(receipt(&chain, &dear)["status"], "0x1");
    assert_eq!(receipt(&chain, &cheap), Value::Null);
}

#[test]
fn a_transaction_that_was_dropped_can_be_sent_again() {
    let (chain, pool) = chain_with_pool();
    let signed = Proposal::new(0).signed(&chain.accounts()[0], &pool);
    let hash = send(&chain, &signed).unwrap();
    chain.drop_transaction(&hash).unwrap();
    chain.mine(1).unwrap();
    assert_eq!(receipt(&chain, &hash), Value::Null);

    assert_eq!(send(&chain, &signed).unwrap(), hash);
    chain.mine(1).unwrap();
    assert_eq!(receipt(&chain, &hash)["status"], "0x1");
}

#[test]
fn a_reorganisation_takes_back_what_blocks_did() {
    let (chain, pool) = chain_with_pool();
    let owner = &chain.accounts()[0];
    let signed = Proposal::new(0).signed(owner, &pool);
    let hash = send(&chain, &signed).unwrap();
    chain.mine(1).unwrap();
    assert_eq!(pool.polls(&chain).unwrap().len(), 1);

    chain.reorg(1).unwrap();
    assert_eq!(receipt(&chain, &hash), Value::Null);
    assert_eq!(transaction_count(&chain, &owner.address), "0x0");
    assert!(pool.polls(&chain).unwrap().is_empty());

    assert_eq!(send(&chain, &signed).unwrap(), hash);
    chain.mine(1).unwrap();
    assert_eq!(pool.polls(&chain).unwrap().len(), 1);
}

#[test]
fn a_restart_keeps_the_chain_and_forgets_what_waited() {
    let (chain, pool) = chain_with_pool();
    let owner = &chain.accounts()[0];
    let mined = send(&chain, &Proposal::new(0).signed(owner, &pool)).unwrap();
    chain.mine(1).unwrap();
    let waiting = send(&chain, &Proposal::new(1).signed(owner, &pool)).unwrap();
    let before = (chain.url().to_owned(), pool.polls(&chain).unwrap());

    chain.restart().unwrap();

    assert_eq!((chain.url().to_owned(), pool.polls(&chain).unwrap()), before);
    assert_eq!(receipt(&chain, &mined)["status"], "0x1");
    chain.mine(1).unwrap();
    assert_eq!(receipt(&chain, &waiting), Value::Null);
    assert_eq!(transaction_count(&chain, &owner.address), "0x1");

    chain.reorg(2).unwrap();
    assert_eq!(receipt(&chain, &mined), Value::Null);
}

#[test]
fn who_has_no_money_is_told_so() {
    let (chain, pool) = chain_with_pool();
    let owner = &chain.accounts()[0];
    let signed = Proposal::new(0).signed(owner, &pool);
    chain.set_balance(&owner.address, 5).unwrap();
    let (_, words) = refusal(send(&chain, &signed));
    assert_eq!(words, "Insufficient funds for gas * price + value");

    chain.set_balance(&owner.address, 10u128.pow(18)).unwrap();
    send(&chain, &signed).unwrap();
}

#[test]
fn mining_of_any_pace_can_be_stopped() {
    for mining in [Mining::Automatic, Mining::Every(Duration::from_secs(1))] {
        let chain = Anvil::start(&AnvilOptions { mining, ..Default::default() }).unwrap();
        assert!(chain.is_mining().unwrap());
        chain.stop_mining().unwrap();
        assert!(!chain.is_mining().unwrap());
    }
}

#[test]
fn what_waits_is_mined_when_mining_is_started() {
    let (chain, pool) = chain_with_pool();
    send(&chain, &Proposal::new(0).signed(&chain.accounts()[0], &pool)).unwrap();
    chain.start_mining().unwrap();
    wait_until("it is mined", || pool.polls(&chain).unwrap().len() == 1);
}

#[test]
fn a_legacy_transaction_is_mined_on_a_legacy_chain() {
    let chain = Anvil::start(&AnvilOptions { legacy: true, ..Default::default() }).unwrap();
    let owner = &chain.accounts()[0];
    let pool = Pool::deploy(&chain, owner).unwrap();
    send(&chain, &Proposal::new(0).signed_legacy(owner, &pool)).unwrap();
    wait_until("it is mined", || pool.polls(&chain).unwrap().len() == 1);
}

#[test]
fn a_killed_process_leaves_neither_node_nor_directory() {
    if env::var_os(TO_BE_KILLED).is_some() {
        return wait_to_be_killed();
    }
    let temporary = tempfile::tempdir().unwrap();
    let mut process = Command::new(env::current_exe().unwrap())
        .args(["--exact", "anvil::a_killed_process_leaves_neither_node_nor_directory"])
        .arg("--nocapture")
        .env(TO_BE_KILLED, "1")
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let address = address_said_by(&mut process);
    let is_empty = || temporary.path().read_dir().unwrap().next().is_none();
    assert!(TcpStream::connect(&address).is_ok());
    assert!(!is_empty());

    process.kill().unwrap();
    process.wait().unwrap();

    wait_until("nobody listens", || TcpStream::connect(&address).is_err());
    wait_until("the directory is gone", is_empty);
}

/// Has this test, run in a process of its own, be the one that is killed.
const TO_BE_KILLED: &str = "GRID_BATCH_TEST_CHAIN_TO_BE_KILLED";

fn wait_to_be_killed() {
    let chain = Anvil::start(&AnvilOptions::default()).unwrap();
    println!("\n{}", chain.url());
    thread::park();
}

fn address_said_by(process: &mut Child) -> String {
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    lines
        .map(Result::unwrap)
        .find_map(|line| Some(line.strip_prefix("http://")?.to_owned()))
        .unwrap()
}
