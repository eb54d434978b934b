//! The server executes nearly as many transactions in a second as a loop that keeps as many in flight, stores nothing, and
//! may lose or repeat them.

use std::{
    collections::VecDeque,
    thread,
    time::{Duration, Instant},
};

use grid_batch_test_chain::{AnvilOptions, Chain, Endpoint, Mining, Node, Transfer};
use grid_batch_test_support::wait::wait_until;
use serde_json::json;

use crate::{
    harness::{USUAL_PACE, WithdrawalHarness, WithdrawalServer},
    transaction_requests::{recipient, transfer},
};

/// What the server must reach of the loop's rate.
const SHARE: f64 = 0.8;
const TRANSFERS: u64 = 300;
const CLIENTS: u64 = 8;
/// How many transactions of the loop are sent and not mined: as many as `evm.in_flight` allows.
const WINDOW: usize = 16;
const GWEI: u128 = 1_000_000_000;

/// Adds a block now and then if blocks are added when transactions arrive: one that arrives while Anvil mines may stay
/// unmined until the next.
struct ExtraBlocks<'a> {
    chain: Option<&'a Chain>,
    last: Instant,
}

impl<'a> ExtraBlocks<'a> {
    const INTERVAL: Duration = Duration::from_secs(2);

    fn new(chain: &'a Chain, mining: Mining) -> Self {
        Self { chain: (mining == Mining::Automatic).then_some(chain), last: Instant::now() }
    }

    fn add_if_due(&mut self) {
        if let Some(chain) = self.chain
            && self.last.elapsed() >= Self::INTERVAL
        {
            chain.mine(1).unwrap();
            self.last = Instant::now();
        }
    }
}

/// A loop with a counter of nonces, which signs by itself, and asks for the receipts in order.
fn run_loop(harness: &WithdrawalHarness, mut blocks: ExtraBlocks<'_>) -> f64 {
    let account = &harness.anvil.accounts()[1];
    let node = Endpoint::new(harness.anvil.url().to_owned());
    let call = |method: &str, params| node.call(method, &params).unwrap();
    let (mut nonce, mut in_flight) = (0, VecDeque::new());
    let started = Instant::now();
    while nonce < TRANSFERS || !in_flight.is_empty() {
        if nonce < TRANSFERS && in_flight.len() < WINDOW {
            let to = recipient(nonce).parse().unwrap();
            let (max_fee, tip) = (20 * GWEI, GWEI);
            let transfer = Transfer { chain_id: 31_337, nonce, to, value: 1, max_fee, tip };
            let signed = transfer.sign(account).unwrap();
            in_flight.push_back(call("eth_sendRawTransaction", json!([signed])));
            nonce += 1;
            continue;
        }
        let oldest = in_flight.front().unwrap();
        if call("eth_getTransactionReceipt", json!([oldest])).is_null() {
            blocks.add_if_due();
            thread::sleep(Duration::from_millis(10));
        } else {
            in_flight.pop_front();
        }
    }
    TRANSFERS as f64 / started.elapsed().as_secs_f64()
}

/// Several clients request them at once, as one alone waits for each answer.
fn run_server(server: &WithdrawalServer, mut blocks: ExtraBlocks<'_>) -> f64 {
    let started = Instant::now();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                for number in (1..=TRANSFERS).filter(|number| number % CLIENTS == client) {
                    server.send_transaction(&transfer(number));
                }
            });
        }
    });
    let count = |state: &str| {
        let page = server.get(&format!("/v1/transactions?state={state}&limit=1")).json();
        page["data"].as_array().unwrap().len()
    };
    wait_until("none is open", || {
        blocks.add_if_due();
        count("open") == 0
    });
    let elapsed = started.elapsed().as_secs_f64();
    assert_eq!(count("failed"), 0);
    TRANSFERS as f64 / elapsed
}

fn compare(blocks: &str, mining: Mining) -> f64 {
    let options = AnvilOptions { mining, ..AnvilOptions::default() };
    let harness = WithdrawalHarness::on_node(Node::Anvil, &options);
    let mut command = harness.command(USUAL_PACE);
    command.args(["--gas-admins-may-send", "admin0=*"]);
    // Without the proxy, which forwards one call after another.
    command.env("GRID_BATCH_LEDGER_URLS", harness.anvil.url());
    let server = WithdrawalServer::start(command);
    server.wait_until_executed(&server.send_transaction(&transfer(1)));
    let extra = || ExtraBlocks::new(&harness.anvil, mining);
    let rates = [run_server(&server, extra()), run_loop(&harness, extra())];
    let share = rates[0] / rates[1];
    let [ours, theirs] = rates;
    eprintln!("{blocks}: server {ours:.1}/s, pipelining loop {theirs:.1}/s, share {share:.2}");
    assert_eq!(harness.nonce(0), TRANSFERS + 1);
    share
}

#[test]
fn as_fast_as_a_pipelining_loop_on_1_s_blocks() {
    let share = compare("1 s blocks", Mining::Every(Duration::from_secs(1)));
    assert!(share >= SHARE, "{share:.2}");
}

/// The rate is limited by the processor, so a debug build only prints it.
#[test]
fn share_of_a_pipelining_loop_on_instant_blocks() {
    let share = compare("instant blocks", Mining::Automatic);
    assert!(cfg!(debug_assertions) || share >= SHARE, "{share:.2}");
}
