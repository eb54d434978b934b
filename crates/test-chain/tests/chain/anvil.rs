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

/// A chain that mines on request, with a pool of its first account.
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
fn options_set_up_the_chain() {
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

    let legacy =
        Anvil::start(&AnvilOptions { hardfork: Some("berlin"), ..Default::default() }).unwrap();
    let block = legacy.rpc("eth_getBlockByNumber", json!(["latest", false])).unwrap();
    assert_eq!(block["baseFeePerGas"], Value::Null);
}

#[test]
fn invalid_options_are_reported() {
    let options = AnvilOptions { accounts: Some(usize::MAX), ..Default::default() };
    let error = Anvil::start(&options).unwrap_err();
    assert_eq!(error.to_string(), "cannot start anvil");
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(!reason.is_empty(), "{reason}");
}

#[test]
fn base_fee_can_be_set() {
    let (chain, _) = chain_with_pool();
    chain.set_base_fee(200).unwrap();
    assert_eq!(gas_price_in_gwei(&chain), 201);
    assert_eq!(gas_price_in_gwei(&chain), 201);
    chain.set_base_fee(1).unwrap();
    assert_eq!(gas_price_in_gwei(&chain), 2);
}

#[test]
fn base_fee_falls_with_every_block() {
    let (chain, _) = chain_with_pool();
    chain.set_base_fee(800).unwrap();
    chain.mine(2).unwrap();
    assert_eq!(gas_price_in_gwei(&chain), 701 - 88);
}

#[test]
fn underpriced_transaction_is_stuck_until_replaced() {
    let (chain, pool) = chain_with_pool();
    let owner = &chain.accounts()[0];
    let cheap = send(&chain, &Proposal::new(0).at_gwei(3, 1).signed(owner, &pool)).unwrap();
    chain.set_base_fee(500).unwrap();
    chain.mine(1).unwrap();
    assert_eq!(receipt(&chain, &cheap), Value::Null);

    let replacement = send(&chain, &Proposal::new(0).at_gwei(700, 2).signed(owner, &pool)).unwrap();
    chain.mine(1).unwrap();
    assert_eq!(receipt(&chain, &replacement)["status"], "0x1");
    assert_eq!(receipt(&chain, &cheap), Value::Null);
}

#[test]
fn dropped_transaction_can_be_sent_again() {
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
fn reorg_undoes_blocks() {
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
fn restart_keeps_the_chain_and_drops_pending() {
    let (chain, pool) = chain_with_pool();
    let owner = &chain.accounts()[0];
    let mined = send(&chain, &Proposal::new(0).signed(owner, &pool)).unwrap();
    chain.mine(1).unwrap();
    let pending = send(&chain, &Proposal::new(1).signed(owner, &pool)).unwrap();
    let before = (chain.url().to_owned(), pool.polls(&chain).unwrap());

    chain.restart().unwrap();

    assert_eq!((chain.url().to_owned(), pool.polls(&chain).unwrap()), before);
    assert_eq!(receipt(&chain, &mined)["status"], "0x1");
    chain.mine(1).unwrap();
    assert_eq!(receipt(&chain, &pending), Value::Null);
    assert_eq!(transaction_count(&chain, &owner.address), "0x1");

    chain.reorg(2).unwrap();
    assert_eq!(receipt(&chain, &mined), Value::Null);
}

#[test]
fn insufficient_funds_are_refused() {
    let (chain, pool) = chain_with_pool();
    let owner = &chain.accounts()[0];
    let signed = Proposal::new(0).signed(owner, &pool);
    chain.set_balance(&owner.address, 5).unwrap();
    let (_, message) = refusal(send(&chain, &signed));
    assert_eq!(message, "Insufficient funds for gas * price + value");

    chain.set_balance(&owner.address, 10u128.pow(18)).unwrap();
    send(&chain, &signed).unwrap();
}

#[test]
fn mining_can_be_stopped() {
    for mining in [Mining::Automatic, Mining::Every(Duration::from_secs(1))] {
        let chain = Anvil::start(&AnvilOptions { mining, ..Default::default() }).unwrap();
        assert!(chain.is_mining().unwrap());
        chain.stop_mining().unwrap();
        assert!(!chain.is_mining().unwrap());
    }
}

#[test]
fn pending_transactions_are_mined_when_mining_starts() {
    let (chain, pool) = chain_with_pool();
    send(&chain, &Proposal::new(0).signed(&chain.accounts()[0], &pool)).unwrap();
    chain.start_mining().unwrap();
    wait_until("the transaction is mined", || pool.polls(&chain).unwrap().len() == 1);
}

#[test]
fn legacy_transaction_is_mined_on_a_legacy_chain() {
    let chain =
        Anvil::start(&AnvilOptions { hardfork: Some("berlin"), ..Default::default() }).unwrap();
    let owner = &chain.accounts()[0];
    let pool = Pool::deploy(&chain, owner).unwrap();
    send(&chain, &Proposal::new(0).signed_legacy(owner, &pool)).unwrap();
    wait_until("the transaction is mined", || pool.polls(&chain).unwrap().len() == 1);
}

#[test]
fn killed_process_leaves_no_node_and_no_directory() {
    if env::var_os(TO_BE_KILLED).is_some() {
        return wait_to_be_killed();
    }
    let temporary = tempfile::tempdir().unwrap();
    let mut process = Command::new(env::current_exe().unwrap())
        .args(["--exact", "anvil::killed_process_leaves_no_node_and_no_directory"])
        .arg("--nocapture")
        .env(TO_BE_KILLED, "1")
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let address = address_printed_by(&mut process);
    let is_empty = || temporary.path().read_dir().unwrap().next().is_none();
    assert!(TcpStream::connect(&address).is_ok());
    assert!(!is_empty());

    process.kill().unwrap();
    process.wait().unwrap();

    wait_until("the port is closed", || TcpStream::connect(&address).is_err());
    wait_until("the directory is deleted", is_empty);
}

/// Is set in the child process of this test that is killed.
const TO_BE_KILLED: &str = "GRID_BATCH_TEST_CHAIN_TO_BE_KILLED";

fn wait_to_be_killed() {
    let chain = Anvil::start(&AnvilOptions::default()).unwrap();
    println!("\n{}", chain.url());
    thread::park();
}

fn address_printed_by(process: &mut Child) -> String {
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    lines
        .map(Result::unwrap)
        .find_map(|line| Some(line.strip_prefix("http://")?.to_owned()))
        .unwrap()
}
