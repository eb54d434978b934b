use std::{
    io::Write,
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use grid_batch_test_chain::{Anvil, AnvilOptions, Fault, FaultProxy, Mining, Pool};
use serde_json::{Value, json};

use crate::{
    client::{Received, call, post},
    wait::{TIMEOUT, wait_until},
    wallet::{Proposal, receipt},
};

/// A chain that mines on request, with a pool of its first account and a proxy.
struct Fixture {
    chain: Anvil,
    pool: Pool,
    proxy: FaultProxy,
}

impl Fixture {
    fn new() -> Self {
        let options = AnvilOptions { mining: Mining::Manual, ..Default::default() };
        let chain = Anvil::start(&options).unwrap();
        let pool = Pool::deploy(&chain, &chain.accounts()[0]).unwrap();
        let proxy = FaultProxy::start(chain.url()).unwrap();
        Self { chain, pool, proxy }
    }

    fn call(&self, method: &str, params: Value) -> Received {
        call(self.proxy.url(), method, params)
    }

    fn block_number(&self) -> Received {
        self.call("eth_blockNumber", json!([]))
    }

    fn send(&self, proposal: Proposal) -> Received {
        let signed = proposal.signed(&self.chain.accounts()[0], &self.pool);
        self.call("eth_sendRawTransaction", json!([signed]))
    }

    fn polls(&self) -> usize {
        self.chain.mine(1).unwrap();
        self.pool.polls(&self.chain).unwrap().len()
    }
}

fn hash(received: Received) -> String {
    match received {
        Received::Result(Value::String(hash)) => hash,
        other => panic!("{other:?}"),
    }
}

fn refusal(message: &str) -> Received {
    Received::Error(-32000, message.to_owned())
}

fn block(number: u64) -> Received {
    Received::Result(json!(format!("{number:#x}")))
}

#[test]
fn calls_are_forwarded_and_recorded() {
    let fixture = Fixture::new();
    assert_eq!(fixture.block_number(), block(1));
    let sent = hash(fixture.send(Proposal::new(0)));
    assert_eq!(fixture.block_number(), block(1));
    assert_eq!(fixture.polls(), 1);

    let log = fixture.proxy.log();
    assert_eq!(log, ["eth_blockNumber", "eth_sendRawTransaction", "eth_blockNumber"]);
    assert_eq!(fixture.proxy.calls("eth_blockNumber"), 2);
    assert_eq!(fixture.proxy.calls(FaultProxy::ANY), 3);
    let [transaction] = &fixture.proxy.sent()[..] else { panic!("{:?}", fixture.proxy.sent()) };
    assert_eq!(transaction.hash, sent);
    assert_eq!(transaction.sender, fixture.chain.accounts()[0].address);
    assert_eq!((transaction.nonce, transaction.max_fee), (0, 10_000_000_000));
}

#[test]
fn calls_of_a_batch_have_their_own_faults() {
    let fixture = Fixture::new();
    fixture.proxy.set("eth_blockNumber", Fault::Null);
    let call =
        |id: u64, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": []});
    let batch = json!([call(1, "eth_chainId"), call(2, "eth_blockNumber")]).to_string();
    let answer = post(fixture.proxy.url(), &batch).unwrap();
    assert_eq!((&answer[0]["result"], &answer[1]["result"]), (&json!("0x7a69"), &Value::Null));
    assert_eq!(fixture.proxy.calls("eth_chainId"), 1);
    fixture.proxy.set("eth_blockNumber", Fault::NotForwarded);
    assert!(post(fixture.proxy.url(), &batch).is_err());
    assert_eq!(fixture.proxy.calls("eth_chainId"), 2, "the other call is forwarded");
}

#[test]
fn each_fault_reaches_the_client() {
    let fixture = Fixture::new();
    let delay = Some(Duration::from_secs(7));
    for (fault, expected) in [
        (Fault::status(503), Received::Status { code: 503, retry_after: None }),
        (
            Fault::Status { code: 429, retry_after: delay },
            Received::Status { code: 429, retry_after: Some("7".to_owned()) },
        ),
        (Fault::rpc_error("header not found"), refusal("header not found")),
        (Fault::Null, Received::Result(Value::Null)),
        (Fault::NotForwarded, Received::Nothing),
        (Fault::LostAnswer, Received::Nothing),
    ] {
        fixture.proxy.set("eth_blockNumber", fault.clone());
        assert_eq!(fixture.block_number(), expected, "{fault:?}");
        assert_eq!(fixture.block_number(), expected, "{fault:?}");
        assert_eq!(fixture.call("eth_chainId", json!([])), Received::Result(json!("0x7a69")));
    }
    fixture.proxy.clear();
    assert_eq!(fixture.block_number(), block(1));
}

#[test]
fn fault_can_be_limited_to_some_calls() {
    let fixture = Fixture::new();
    fixture.proxy.set_next("eth_blockNumber", 2, Fault::Null);
    assert_eq!(fixture.block_number(), Received::Result(Value::Null));
    assert_eq!(fixture.block_number(), Received::Result(Value::Null));
    assert_eq!(fixture.block_number(), block(1));
}

#[test]
fn fault_of_one_method_takes_precedence() {
    let fixture = Fixture::new();
    fixture.proxy.set(FaultProxy::ANY, Fault::status(503));
    fixture.proxy.set_next("eth_blockNumber", 1, Fault::Null);
    assert_eq!(fixture.block_number(), Received::Result(Value::Null));
    assert_eq!(fixture.block_number(), Received::Status { code: 503, retry_after: None });
}

#[test]
fn lost_answer_reaches_the_node() {
    let fixture = Fixture::new();
    fixture.proxy.set("eth_sendRawTransaction", Fault::LostAnswer);
    assert_eq!(fixture.send(Proposal::new(0)), Received::Nothing);
    assert_eq!(fixture.polls(), 1);
    assert_eq!(fixture.proxy.sent().len(), 1);
}

#[test]
fn not_forwarded_does_not_reach_the_node() {
    let fixture = Fixture::new();
    fixture.proxy.set_next("eth_sendRawTransaction", 1, Fault::NotForwarded);
    assert_eq!(fixture.send(Proposal::new(0)), Received::Nothing);
    assert_eq!(fixture.polls(), 0);
    assert!(fixture.proxy.sent().is_empty());
}

#[test]
fn slow_answer_is_delayed() {
    let fixture = Fixture::new();
    let delay = Duration::from_millis(100);
    fixture.proxy.set("eth_blockNumber", Fault::Slow(delay));
    let started = Instant::now();
    assert_eq!(fixture.block_number(), block(1));
    assert!(started.elapsed() >= delay);
}

#[test]
fn stale_node_repeats_its_first_response() {
    let fixture = Fixture::new();
    let owner = fixture.chain.accounts()[0].address.clone();
    let count = |block| fixture.call("eth_getTransactionCount", json!([owner, block]));
    let zero = Received::Result(json!("0x0"));
    let one = Received::Result(json!("0x1"));
    fixture.proxy.set("eth_getTransactionCount", Fault::Stale);
    assert_eq!(count("latest"), zero);

    fixture.send(Proposal::new(0));
    fixture.chain.mine(1).unwrap();
    assert_eq!((count("latest"), count("pending")), (zero, one.clone()));

    fixture.proxy.set("eth_getTransactionCount", Fault::Stale);
    assert_eq!(count("latest"), one);
}

#[test]
fn unreachable_node_closes_the_connection() {
    let Fixture { chain, proxy, .. } = Fixture::new();
    drop(chain);
    assert_eq!(call(proxy.url(), "eth_blockNumber", json!([])), Received::Nothing);
}

#[test]
fn restarted_node_is_found_again() {
    let fixture = Fixture::new();
    assert_eq!(fixture.block_number(), block(1));
    fixture.chain.restart().unwrap();
    assert_eq!(fixture.block_number(), block(1));
}

#[test]
fn replacement_must_raise_both_fees() {
    let fixture = Fixture::new();
    fixture.proxy.require_bump(10);
    hash(fixture.send(Proposal::new(0).at_gwei(100, 10)));
    let underpriced = refusal("replacement transaction underpriced");
    assert_eq!(fixture.send(Proposal::new(0).at_gwei(109, 11)), underpriced);
    assert_eq!(fixture.send(Proposal::new(0).at_gwei(110, 10)), underpriced);
    let replacement = hash(fixture.send(Proposal::new(0).at_gwei(110, 11)));
    assert_eq!(fixture.send(Proposal::new(0).at_gwei(110, 11)), refusal("already known"));
    assert_eq!(fixture.proxy.sent().len(), 3);

    fixture.chain.mine(1).unwrap();
    assert_eq!(receipt(&fixture.chain, &replacement)["status"], "0x1");
    let Received::Error(_, message) = fixture.send(Proposal::new(0).at_gwei(50, 1)) else {
        panic!()
    };
    assert_eq!(message, "nonce too low");
}

#[test]
fn dropped_transaction_need_not_be_outbid() {
    let fixture = Fixture::new();
    fixture.proxy.require_bump(10);
    let forgotten = hash(fixture.send(Proposal::new(0).at_gwei(100, 10)));
    fixture.chain.drop_transaction(&forgotten).unwrap();
    hash(fixture.send(Proposal::new(0).at_gwei(50, 1)));
}

#[test]
fn underpriced_transaction_is_kept_until_it_pays_enough() {
    let fixture = Fixture::new();
    fixture.chain.set_base_fee(100).unwrap();
    let cheap = Proposal::new(0).at_gwei(50, 1);
    let Received::Error(_, message) = fixture.send(cheap.clone()) else { panic!() };
    assert_eq!(message, "max fee per gas less than block base fee");

    fixture.proxy.keep_underpriced();
    let pending = hash(fixture.send(cheap));
    let Received::Result(known) = fixture.call("eth_getTransactionByHash", json!([pending])) else {
        panic!()
    };
    assert_eq!((&known["hash"], &known["blockNumber"]), (&json!(pending), &Value::Null));
    fixture.block_number();
    assert_eq!(fixture.polls(), 0);

    fixture.chain.set_base_fee(20).unwrap();
    fixture.block_number();
    assert_eq!(fixture.polls(), 1);
    assert_eq!(receipt(&fixture.chain, &pending)["status"], "0x1");
}

#[test]
fn transaction_that_became_underpriced_is_kept() {
    let fixture = Fixture::new();
    fixture.proxy.keep_underpriced();
    let cheap = hash(fixture.send(Proposal::new(0).at_gwei(50, 1)));
    fixture.chain.set_base_fee(100).unwrap();
    assert_eq!(fixture.polls(), 0);
    let Received::Result(known) = fixture.call("eth_getTransactionByHash", json!([cheap])) else {
        panic!()
    };
    assert_eq!(known["hash"], cheap);

    fixture.chain.set_base_fee(20).unwrap();
    fixture.block_number();
    assert_eq!(fixture.polls(), 1);
}

#[test]
fn dropped_transaction_is_not_kept() {
    let fixture = Fixture::new();
    fixture.proxy.keep_underpriced();
    let dropped = hash(fixture.send(Proposal::new(0)));
    fixture.chain.drop_transaction(&dropped).unwrap();
    let known = fixture.call("eth_getTransactionByHash", json!([dropped]));
    assert_eq!(known, Received::Result(Value::Null));
    assert_eq!(fixture.polls(), 0);
}

#[test]
fn kept_transaction_can_be_outbid() {
    let fixture = Fixture::new();
    fixture.proxy.require_bump(10);
    fixture.proxy.keep_underpriced();
    fixture.chain.set_base_fee(100).unwrap();
    hash(fixture.send(Proposal::new(0).at_gwei(50, 1)));
    let underpriced = refusal("replacement transaction underpriced");
    assert_eq!(fixture.send(Proposal::new(0).at_gwei(51, 2)), underpriced);
    let expensive = hash(fixture.send(Proposal::new(0).at_gwei(150, 2)));
    fixture.block_number();
    fixture.chain.set_base_fee(1).unwrap();
    fixture.block_number();
    assert_eq!(fixture.polls(), 1);
    assert_eq!(receipt(&fixture.chain, &expensive)["status"], "0x1");
}

#[test]
fn call_can_be_held_before_the_node() {
    let fixture = Fixture::new();
    let stop = fixture.proxy.stop_before("eth_sendRawTransaction", 2);
    hash(fixture.send(Proposal::new(0)));
    assert!(!stop.wait(Duration::ZERO));
    thread::scope(|scope| {
        let held = scope.spawn(|| fixture.send(Proposal::new(1)));
        assert!(stop.wait(TIMEOUT));
        assert_eq!(fixture.proxy.sent().len(), 1);
        stop.release();
        hash(held.join().unwrap());
    });
    assert_eq!(fixture.polls(), 2);
}

#[test]
fn call_cut_before_the_node_changes_nothing() {
    let fixture = Fixture::new();
    let stop = fixture.proxy.stop_before("eth_sendRawTransaction", 1);
    thread::scope(|scope| {
        let held = scope.spawn(|| fixture.send(Proposal::new(0)));
        assert!(stop.wait(TIMEOUT));
        stop.cut();
        assert_eq!(held.join().unwrap(), Received::Nothing);
    });
    assert_eq!(fixture.polls(), 0);
}

#[test]
fn call_can_be_held_after_the_node() {
    let fixture = Fixture::new();
    let stop = fixture.proxy.stop_after("eth_sendRawTransaction", 1);
    thread::scope(|scope| {
        let held = scope.spawn(|| fixture.send(Proposal::new(0)));
        assert!(stop.wait(TIMEOUT));
        assert_eq!(fixture.polls(), 1);
        stop.cut();
        assert_eq!(held.join().unwrap(), Received::Nothing);
    });
}

#[test]
fn fault_can_be_set_for_a_held_call() {
    let fixture = Fixture::new();
    let stop = fixture.proxy.stop_before("eth_blockNumber", 1);
    thread::scope(|scope| {
        let held = scope.spawn(|| fixture.block_number());
        assert!(stop.wait(TIMEOUT));
        fixture.proxy.set("eth_blockNumber", Fault::Null);
        stop.release();
        assert_eq!(held.join().unwrap(), Received::Result(Value::Null));
    });
}

#[test]
fn held_call_blocks_no_other_and_is_released_on_drop() {
    let fixture = Fixture::new();
    let stop = fixture.proxy.stop_before("eth_sendRawTransaction", 1);
    thread::scope(|scope| {
        let held = scope.spawn(|| fixture.send(Proposal::new(0)));
        assert!(stop.wait(TIMEOUT));
        assert_eq!(fixture.block_number(), block(1));
        hash(fixture.send(Proposal::new(1)));
        drop(stop);
        hash(held.join().unwrap());
    });
    assert_eq!(fixture.polls(), 2);
}

#[test]
fn held_call_continues_after_its_client_disconnects() {
    let fixture = Fixture::new();
    let stop = fixture.proxy.stop_before("eth_sendRawTransaction", 1);
    let signed = Proposal::new(0).signed(&fixture.chain.accounts()[0], &fixture.pool);
    let request =
        json!({"id": 1, "method": "eth_sendRawTransaction", "params": [signed]}).to_string();
    let mut client =
        TcpStream::connect(fixture.proxy.url().strip_prefix("http://").unwrap()).unwrap();
    write!(
        client,
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{request}",
        request.len()
    )
    .unwrap();
    assert!(stop.wait(TIMEOUT));
    drop(client);
    stop.release();
    wait_until("the node has the transaction", || fixture.proxy.sent().len() == 1);
}

#[test]
fn dropping_the_proxy_closes_its_connections() {
    let Fixture { chain: _chain, proxy, .. } = Fixture::new();
    let url = proxy.url().to_owned();
    let stop = proxy.stop_before("eth_blockNumber", 1);
    thread::scope(|scope| {
        let held = scope.spawn(|| call(&url, "eth_blockNumber", json!([])));
        assert!(stop.wait(TIMEOUT));
        drop(proxy);
        assert_eq!(held.join().unwrap(), Received::Nothing);
    });
    assert_eq!(call(&url, "eth_blockNumber", json!([])), Received::Nothing);
}
