use std::time::Duration;

use grid_batch_test_chain::{Anvil, AnvilOptions, Mining, Pool};
use serde_json::json;

use crate::wallet::{Proposal, refusal, send};

fn call(chain: &Anvil, pool: &Pool, from: &str, proposal: &Proposal) -> (i64, String) {
    let call = json!({"from": from, "to": pool.address(), "input": proposal.input().to_string()});
    refusal(chain.rpc("eth_call", json!([call, "latest"])))
}

#[test]
fn accepted_withdrawals_are_listed() {
    let chain =
        Anvil::start(&AnvilOptions { mining: Mining::Manual, ..Default::default() }).unwrap();
    let owner = &chain.accounts()[0];
    let pool = Pool::deploy(&chain, owner).unwrap();
    let other = Pool::deploy(&chain, owner).unwrap();
    assert!(pool.polls(&chain).unwrap().is_empty());

    let beneficiary = "0x00000000000000000000000000000000000000aa".to_owned();
    let first = Proposal::new(0);
    let second = Proposal { beneficiary: beneficiary.clone(), ..Proposal::new(1) };
    send(&chain, &first.signed(owner, &pool)).unwrap();
    let hash = send(&chain, &second.signed(owner, &pool)).unwrap();
    chain.mine(1).unwrap();

    let polls = pool.polls(&chain).unwrap();
    assert_eq!(polls.len(), 2);
    assert_eq!((polls[0].id.as_str(), polls[0].member.as_str()), ("1", "1"));
    assert_eq!((polls[0].amount.as_str(), polls[0].nonce), ("10", 0));
    assert_eq!((polls[1].id.as_str(), polls[1].member.as_str()), ("2", "2"));
    assert_eq!((polls[1].amount.as_str(), polls[1].nonce), ("11", 1));
    assert_eq!(polls[1].beneficiary, beneficiary);
    assert_eq!(polls[1].sender, owner.address);
    assert_eq!(polls[1].transaction_hash, hash);
    assert_eq!(polls[1].block_number, chain.block_number().unwrap());
    assert!(other.polls(&chain).unwrap().is_empty());
}

#[test]
fn refusal_has_a_reason() {
    let chain = Anvil::start(&AnvilOptions::default()).unwrap();
    let [owner, stranger] = [0, 1].map(|at| chain.accounts()[at].clone());
    let pool = Pool::deploy(&chain, &owner).unwrap();
    let proposal = Proposal::new(0);

    let error = call(&chain, &pool, &stranger.address, &proposal);
    assert_eq!(error, (3, "execution reverted: not the owner".to_owned()));
    let error = call(&chain, &pool, &owner.address, &Proposal { amount: 0, ..proposal.clone() });
    assert_eq!(error, (3, "execution reverted: amount is zero".to_owned()));
    let no_beneficiary = Proposal { beneficiary: format!("0x{:040x}", 0), ..proposal };
    let (code, message) = call(&chain, &pool, &owner.address, &no_beneficiary);
    assert_eq!(code, 3);
    assert!(message.starts_with("execution reverted: custom error"), "{message}");
}

#[test]
fn pool_can_be_deployed_on_any_chain() {
    for options in [
        AnvilOptions { mining: Mining::Every(Duration::from_secs(1)), ..Default::default() },
        AnvilOptions { hardfork: Some("berlin"), ..Default::default() },
        AnvilOptions { base_fee_gwei: Some(300), mining: Mining::Manual, ..Default::default() },
        AnvilOptions { accounts: Some(1), chain_id: Some(5), ..Default::default() },
    ] {
        let chain = Anvil::start(&options).unwrap();
        let owner = &chain.accounts()[0];
        let pool = Pool::deploy(&chain, owner).unwrap();
        let code = chain.rpc("eth_getCode", json!([pool.address(), "latest"])).unwrap();
        assert!(code.as_str().unwrap().len() > 2, "{options:?}");
        let used = chain.rpc("eth_getTransactionCount", json!([owner.address, "latest"])).unwrap();
        assert_eq!(used, "0x0");
    }
}
