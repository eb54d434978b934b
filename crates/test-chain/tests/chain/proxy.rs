use std::{
    io::Write,
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use grid_batch_test_chain::{Anvil, AnvilOptions, Fault, FaultProxy, Mining, Pool};
use serde_json::{Value, json};

use crate::{
    client::{Heard, ask, post},
    wait::{PATIENCE, wait_until},
    wallet::{Proposal, receipt},
};

/// A chain whose blocks are asked for, a pool of its first account, and a proxy before it.
struct Rig {
    chain: Anvil,
    pool: Pool,
    proxy: FaultProxy,
}

impl Rig {
    fn new() -> Self {
        let options = AnvilOptions { mining: Mining::Manual, ..Default::default() };
        let chain = Anvil::start(&options).unwrap();
        let pool = Pool::deploy(&chain, &chain.accounts()[0]).unwrap();
        let proxy = FaultProxy::start(chain.url()).unwrap();
        Self { chain, pool, proxy }
    }

    fn ask(&self, method: &str, params: Value) -> Heard {
        ask(self.proxy.url(), method, params)
    }

    fn block_number(&self) -> Heard {
        self.ask("eth_blockNumber", json!([]))
    }

    fn send(&self, proposal: Proposal) -> Heard {
        let signed = proposal.signed(&self.chain.accounts()[0], &self.pool);
        self.ask("eth_sendRawTransaction", json!([signed]))
    }

    fn polls(&self) -> usize {
        self.chain.mine(1).unwrap();
        self.pool.polls(&self.chain).unwrap().len()
    }
}

fn hash(heard: Heard) -> String {
    match heard {
        Heard::Result(Value::String(hash)) => hash,
        other => panic!("{other:?}"),
    }
}

fn refusal(words: &str) -> Heard {
    Heard::Error(-32000, words.to_owned())
}

fn block(number: u64) -> Heard {
    Heard::Result(json!(format!("{number:#x}")))
}

#[test]
fn without_orders_everything_passes_and_is_noted() {
    let rig = Rig::new();
    assert_eq!(rig.block_number(), block(1));
    let sent = hash(rig.send(Proposal::new(0)));
    assert_eq!(rig.block_number(), block(1));
    assert_eq!(rig.polls(), 1);

    let log = rig.proxy.log();
    assert_eq!(log, ["eth_blockNumber", "eth_sendRawTransaction", "eth_blockNumber"]);
    assert_eq!(rig.proxy.calls("eth_blockNumber"), 2);
    assert_eq!(rig.proxy.calls(FaultProxy::ANY), 3);
    let [transaction] = &rig.proxy.sent()[..] else { panic!("{:?}", rig.proxy.sent()) };
    assert_eq!(transaction.hash, sent);
    assert_eq!(transaction.sender, rig.chain.accounts()[0].address);
    assert_eq!((transaction.nonce, transaction.max_fee), (0, 10_000_000_000));
}

#[test]
fn what_is_no_single_call_passes_as_it_is() {
    let rig = Rig::new();
    rig.proxy.set(FaultProxy::ANY, Fault::Null);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []});
    let answer = post(rig.proxy.url(), &json!([call, call]).to_string()).unwrap();
    assert_eq!(answer[1]["result"], "0x7a69");
}

#[test]
fn each_fault_is_seen_by_the_asker() {
    let rig = Rig::new();
    let pause = Some(Duration::from_secs(7));
    for (fault, heard) in [
        (Fault::status(503), Heard::Status { code: 503, retry_after: None }),
        (
            Fault::Status { code: 429, retry_after: pause },
            Heard::Status { code: 429, retry_after: Some("7".to_owned()) },
        ),
        (Fault::answer("header not found"), refusal("header not found")),
        (Fault::Null, Heard::Result(Value::Null)),
        (Fault::NotForwarded, Heard::Nothing),
        (Fault::LostAnswer, Heard::Nothing),
    ] {
        rig.proxy.set("eth_blockNumber", fault.clone());
        assert_eq!(rig.block_number(), heard, "{fault:?}");
        assert_eq!(rig.block_number(), heard, "{fault:?}");
        assert_eq!(rig.ask("eth_chainId", json!([])), Heard::Result(json!("0x7a69")));
    }
    rig.proxy.clear();
    assert_eq!(rig.block_number(), block(1));
}

#[test]
fn a_fault_can_be_for_so_many_calls() {
    let rig = Rig::new();
    rig.proxy.set_next("eth_blockNumber", 2, Fault::Null);
    assert_eq!(rig.block_number(), Heard::Result(Value::Null));
    assert_eq!(rig.block_number(), Heard::Result(Value::Null));
    assert_eq!(rig.block_number(), block(1));
}

#[test]
fn what_is_said_of_one_method_goes_first() {
    let rig = Rig::new();
    rig.proxy.set(FaultProxy::ANY, Fault::status(503));
    rig.proxy.set_next("eth_blockNumber", 1, Fault::Null);
    assert_eq!(rig.block_number(), Heard::Result(Value::Null));
    assert_eq!(rig.block_number(), Heard::Status { code: 503, retry_after: None });
}

#[test]
fn a_lost_answer_was_heard_by_the_node() {
    let rig = Rig::new();
    rig.proxy.set("eth_sendRawTransaction", Fault::LostAnswer);
    assert_eq!(rig.send(Proposal::new(0)), Heard::Nothing);
    assert_eq!(rig.polls(), 1);
    assert_eq!(rig.proxy.sent().len(), 1);
}

#[test]
fn what_was_not_forwarded_was_not_heard() {
    let rig = Rig::new();
    rig.proxy.set_next("eth_sendRawTransaction", 1, Fault::NotForwarded);
    assert_eq!(rig.send(Proposal::new(0)), Heard::Nothing);
    assert_eq!(rig.polls(), 0);
    assert!(rig.proxy.sent().is_empty());
}

#[test]
fn a_slow_answer_comes_after_the_node_has_heard() {
    let rig = Rig::new();
    let pause = Duration::from_millis(100);
    rig.proxy.set("eth_blockNumber", Fault::Slow(pause));
    let asked = Instant::now();
    assert_eq!(rig.block_number(), block(1));
    assert!(asked.elapsed() >= pause);
}

#[test]
fn a_stale_node_says_what_it_said_to_the_very_same() {
    let rig = Rig::new();
    let owner = rig.chain.accounts()[0].address.clone();
    let count = |block| rig.ask("eth_getTransactionCount", json!([owner, block]));
    let zero = Heard::Result(json!("0x0"));
    let one = Heard::Result(json!("0x1"));
    rig.proxy.set("eth_getTransactionCount", Fault::Stale);
    assert_eq!(count("latest"), zero);

    rig.send(Proposal::new(0));
    rig.chain.mine(1).unwrap();
    assert_eq!((count("latest"), count("pending")), (zero, one.clone()));

    rig.proxy.set("eth_getTransactionCount", Fault::Stale);
    assert_eq!(count("latest"), one);
}

#[test]
fn who_asks_while_the_node_is_away_hears_nothing() {
    let Rig { chain, proxy, .. } = Rig::new();
    drop(chain);
    assert_eq!(ask(proxy.url(), "eth_blockNumber", json!([])), Heard::Nothing);
}

#[test]
fn a_restarted_node_is_found_again() {
    let rig = Rig::new();
    assert_eq!(rig.block_number(), block(1));
    rig.chain.restart().unwrap();
    assert_eq!(rig.block_number(), block(1));
}

#[test]
fn a_replacement_raises_both_fees_enough() {
    let rig = Rig::new();
    rig.proxy.require_bump(10);
    hash(rig.send(Proposal::new(0).at_gwei(100, 10)));
    let underpriced = refusal("replacement transaction underpriced");
    assert_eq!(rig.send(Proposal::new(0).at_gwei(109, 11)), underpriced);
    assert_eq!(rig.send(Proposal::new(0).at_gwei(110, 10)), underpriced);
    let replacement = hash(rig.send(Proposal::new(0).at_gwei(110, 11)));
    assert_eq!(rig.send(Proposal::new(0).at_gwei(110, 11)), refusal("already known"));
    assert_eq!(rig.proxy.sent().len(), 3);

    rig.chain.mine(1).unwrap();
    assert_eq!(receipt(&rig.chain, &replacement)["status"], "0x1");
    let Heard::Error(_, words) = rig.send(Proposal::new(0).at_gwei(50, 1)) else { panic!() };
    assert_eq!(words, "nonce too low");
}

#[test]
fn what_the_node_forgot_need_not_be_outbid() {
    let rig = Rig::new();
    rig.proxy.require_bump(10);
    let forgotten = hash(rig.send(Proposal::new(0).at_gwei(100, 10)));
    rig.chain.drop_transaction(&forgotten).unwrap();
    hash(rig.send(Proposal::new(0).at_gwei(50, 1)));
}

#[test]
fn what_pays_less_than_the_base_fee_waits_for_a_better_day() {
    let rig = Rig::new();
    rig.chain.set_base_fee(100).unwrap();
    let cheap = Proposal::new(0).at_gwei(50, 1);
    let Heard::Error(_, words) = rig.send(cheap.clone()) else { panic!() };
    assert_eq!(words, "max fee per gas less than block base fee");

    rig.proxy.keep_underpriced();
    let waiting = hash(rig.send(cheap));
    let Heard::Result(known) = rig.ask("eth_getTransactionByHash", json!([waiting])) else {
        panic!()
    };
    assert_eq!((&known["hash"], &known["blockNumber"]), (&json!(waiting), &Value::Null));
    rig.block_number();
    assert_eq!(rig.polls(), 0);

    rig.chain.set_base_fee(20).unwrap();
    rig.block_number();
    assert_eq!(rig.polls(), 1);
    assert_eq!(receipt(&rig.chain, &waiting)["status"], "0x1");
}

#[test]
fn what_became_too_cheap_is_not_forgotten() {
    let rig = Rig::new();
    rig.proxy.keep_underpriced();
    let cheap = hash(rig.send(Proposal::new(0).at_gwei(50, 1)));
    rig.chain.set_base_fee(100).unwrap();
    assert_eq!(rig.polls(), 0);
    let Heard::Result(known) = rig.ask("eth_getTransactionByHash", json!([cheap])) else {
        panic!()
    };
    assert_eq!(known["hash"], cheap);

    rig.chain.set_base_fee(20).unwrap();
    rig.block_number();
    assert_eq!(rig.polls(), 1);
}

#[test]
fn what_was_dropped_on_purpose_is_forgotten() {
    let rig = Rig::new();
    rig.proxy.keep_underpriced();
    let dropped = hash(rig.send(Proposal::new(0)));
    rig.chain.drop_transaction(&dropped).unwrap();
    let known = rig.ask("eth_getTransactionByHash", json!([dropped]));
    assert_eq!(known, Heard::Result(Value::Null));
    assert_eq!(rig.polls(), 0);
}

#[test]
fn what_waits_for_a_better_day_can_be_outbid() {
    let rig = Rig::new();
    rig.proxy.require_bump(10);
    rig.proxy.keep_underpriced();
    rig.chain.set_base_fee(100).unwrap();
    hash(rig.send(Proposal::new(0).at_gwei(50, 1)));
    let underpriced = refusal("replacement transaction underpriced");
    assert_eq!(rig.send(Proposal::new(0).at_gwei(51, 2)), underpriced);
    let dear = hash(rig.send(Proposal::new(0).at_gwei(150, 2)));
    rig.block_number();
    rig.chain.set_base_fee(1).unwrap();
    rig.block_number();
    assert_eq!(rig.polls(), 1);
    assert_eq!(receipt(&rig.chain, &dear)["status"], "0x1");
}

#[test]
fn a_call_can_be_held_before_the_node_hears() {
    let rig = Rig::new();
    let stop = rig.proxy.stop_before("eth_sendRawTransaction", 2);
    hash(rig.send(Proposal::new(0)));
    assert!(!stop.wait(Duration::ZERO));
    thread::scope(|scope| {
        let held = scope.spawn(|| rig.send(Proposal::new(1)));
        assert!(stop.wait(PATIENCE));
        assert_eq!(rig.proxy.sent().len(), 1);
        stop.release();
        hash(held.join().unwrap());
    });
    assert_eq!(rig.polls(), 2);
}

#[test]
fn a_call_that_is_cut_before_the_node_hears_changes_nothing() {
    let rig = Rig::new();
    let stop = rig.proxy.stop_before("eth_sendRawTransaction", 1);
    thread::scope(|scope| {
        let held = scope.spawn(|| rig.send(Proposal::new(0)));
        assert!(stop.wait(PATIENCE));
        stop.cut();
        assert_eq!(held.join().unwrap(), Heard::Nothing);
    });
    assert_eq!(rig.polls(), 0);
}

#[test]
fn a_call_can_be_held_after_the_node_has_heard() {
    let rig = Rig::new();
    let stop = rig.proxy.stop_after("eth_sendRawTransaction", 1);
    thread::scope(|scope| {
        let held = scope.spawn(|| rig.send(Proposal::new(0)));
        assert!(stop.wait(PATIENCE));
        assert_eq!(rig.polls(), 1);
        stop.cut();
        assert_eq!(held.join().unwrap(), Heard::Nothing);
    });
}

#[test]
fn a_fault_can_be_ordered_for_a_call_that_is_held() {
    let rig = Rig::new();
    let stop = rig.proxy.stop_before("eth_blockNumber", 1);
    thread::scope(|scope| {
        let held = scope.spawn(|| rig.block_number());
        assert!(stop.wait(PATIENCE));
        rig.proxy.set("eth_blockNumber", Fault::Null);
        stop.release();
        assert_eq!(held.join().unwrap(), Heard::Result(Value::Null));
    });
}

#[test]
fn what_is_held_hinders_nobody_else_and_is_released_with_its_stop() {
    let rig = Rig::new();
    let stop = rig.proxy.stop_before("eth_sendRawTransaction", 1);
    thread::scope(|scope| {
        let held = scope.spawn(|| rig.send(Proposal::new(0)));
        assert!(stop.wait(PATIENCE));
        assert_eq!(rig.block_number(), block(1));
        hash(rig.send(Proposal::new(1)));
        drop(stop);
        hash(held.join().unwrap());
    });
    assert_eq!(rig.polls(), 2);
}

#[test]
fn what_is_held_goes_on_though_its_asker_is_gone() {
    let rig = Rig::new();
    let stop = rig.proxy.stop_before("eth_sendRawTransaction", 1);
    let signed = Proposal::new(0).signed(&rig.chain.accounts()[0], &rig.pool);
    let call = json!({"id": 1, "method": "eth_sendRawTransaction", "params": [signed]}).to_string();
    let mut asker = TcpStream::connect(rig.proxy.url().strip_prefix("http://").unwrap()).unwrap();
    write!(asker, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{call}", call.len())
        .unwrap();
    assert!(stop.wait(PATIENCE));
    drop(asker);
    stop.release();
    wait_until("the node has it", || rig.proxy.sent().len() == 1);
}

#[test]
fn with_the_proxy_its_connections_end() {
    let Rig { chain: _chain, proxy, .. } = Rig::new();
    let url = proxy.url().to_owned();
    let stop = proxy.stop_before("eth_blockNumber", 1);
    thread::scope(|scope| {
        let held = scope.spawn(|| ask(&url, "eth_blockNumber", json!([])));
        assert!(stop.wait(PATIENCE));
        drop(proxy);
        assert_eq!(held.join().unwrap(), Heard::Nothing);
    });
    assert_eq!(ask(&url, "eth_blockNumber", json!([])), Heard::Nothing);
}
