use std::net::TcpStream;

use grid_batch_test_chain::{Chain, Pool};
use serde_json::{Value, json};

use crate::{
    wait::wait_until,
    wallet::{Proposal, receipt, refusal, send},
};

#[test]
fn hardhat_is_controlled_like_anvil() {
    let chain = Chain::start_hardhat().unwrap();
    let address = chain.url().strip_prefix("http://").unwrap().to_owned();
    assert_eq!(chain.accounts().len(), 10);
    let owner = &chain.accounts()[0];
    let pool = Pool::deploy(&chain, owner).unwrap();

    // Transactions are mined when they arrive, until mining is stopped.
    assert!(chain.is_mining().unwrap());
    send(&chain, &Proposal::new(0).signed(owner, &pool)).unwrap();
    assert_eq!(pool.polls(&chain).unwrap().len(), 1);
    chain.stop_mining().unwrap();
    assert!(!chain.is_mining().unwrap());
    let hash = send(&chain, &Proposal::new(1).signed(owner, &pool)).unwrap();
    assert_eq!(receipt(&chain, &hash), Value::Null);

    chain.drop_transaction(&hash).unwrap();
    chain.set_base_fee(200).unwrap();
    let price = chain.rpc("eth_gasPrice", json!([])).unwrap();
    assert_eq!(price, format!("{:#x}", 201_000_000_000_u64));
    chain.mine(3).unwrap();
    assert_eq!(receipt(&chain, &hash), Value::Null);

    chain.set_block_gas_limit(60_000).unwrap();
    let (_, message) = refusal(send(&chain, &Proposal::new(1).signed(owner, &pool)));
    let expected = "Transaction gas limit is 200000 and exceeds block gas limit of 60000";
    assert_eq!(message, expected);
    chain.set_balance(&owner.address, 5).unwrap();
    let balance = chain.rpc("eth_getBalance", json!([owner.address, "latest"])).unwrap();
    assert_eq!(balance, "0x5");

    drop(chain);
    wait_until("the port is closed", || TcpStream::connect(&address).is_err());
}

#[test]
fn restart_of_hardhat_is_an_error() {
    let error = Chain::start_hardhat().unwrap().restart().unwrap_err();
    assert_eq!(error.to_string(), "cannot start the node again");
}
