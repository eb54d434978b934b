//! Transactions of all kinds from several accounts by two instances, while instances and the node are killed: each is
//! executed exactly once.

use std::collections::BTreeSet;

use fastrand::Rng;
use grid_batch_test_chain::AnvilOptions;
use grid_batch_test_support::{http::Response, wait::wait_until};
use serde_json::{Value, json};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

const ACCOUNTS: usize = 3;

/// The code of a contract that counts in the slot of its argument how often it was called with it.
const COUNTER: &str = "6000358054600101905500";

/// The code of a token with `transfer(address,uint256)`, which keeps the balance of an account in the slot of its
/// address, and takes nothing from the sender.
const TOKEN: &str = "6004358054602435019055600160005260206000f3";

/// The bytes that create a contract with this code.
fn creation(code: &str) -> String {
    format!("0x60{:02x}80600b6000396000f3{code}", code.len() / 2)
}

/// What is sent in a run.
#[derive(Clone, Copy)]
struct Run {
    transactions: u64,
    kills: u64,
    node_restarts: u64,
}

/// The addresses of the contracts that are called.
struct Contracts {
    counter: String,
    token: String,
}

/// A transaction that was requested: its number, account and id.
struct Requested {
    number: u64,
    account: usize,
    id: String,
}

impl Requested {
    /// A quarter are transfers, calls of the counter, payments in the token, and creations of contracts.
    fn body(number: u64, account: usize, contracts: &Contracts) -> Value {
        let (account, amount) = (format!("admin{account}"), number.to_string());
        match number % 4 {
            0 => {
                json!({"account": account, "pay": {"to": recipient(number), "amount": number.to_string()}})
            }
            1 => json!({
                "account": account, "to": contracts.counter, "data": format!("0x{number:064x}"),
            }),
            2 => json!({
                "account": account,
                "pay": {"to": recipient(number), "amount": amount, "token": contracts.token},
            }),
            _ => json!({"account": account, "data": creation(COUNTER)}),
        }
    }

    /// Asserts that the chain shows it exactly once.
    fn check(&self, harness: &WithdrawalHarness, server: &WithdrawalServer, contracts: &Contracts) {
        let slot = |contract: &str, slot: &str| {
            let slot = json!([contract, format!("0x{slot:0>64}"), "latest"]);
            harness.anvil.rpc("eth_getStorageAt", slot).unwrap()
        };
        let stored = stored(server, &self.id);
        let number = self.number;
        match number % 4 {
            0 => {
                let balance = [json!(recipient(number)), json!("latest")];
                let balance = harness.anvil.rpc("eth_getBalance", json!(balance)).unwrap();
                assert_eq!(balance, format!("{number:#x}"), "{stored}");
            }
            1 => {
                let count = slot(&contracts.counter, &format!("{number:x}"));
                assert_eq!(count, format!("0x{:064x}", 1), "{stored}");
            }
            2 => {
                let balance = slot(&contracts.token, &recipient(number)[2..]);
                assert_eq!(balance, format!("0x{number:064x}"), "{stored}");
            }
            _ => {
                let contract = json!([stored["result"]["contract"], "latest"]);
                let code = harness.anvil.rpc("eth_getCode", contract).unwrap();
                assert_eq!(code, format!("0x{COUNTER}"), "{stored}");
            }
        }
    }
}

fn recipient(number: u64) -> String {
    format!("0x{:040x}", 0xfeed_0000_0000 + number)
}

fn stored(server: &WithdrawalServer, id: &str) -> Value {
    server.get(&format!("/v1/transactions/{id}")).json()
}

fn send(server: &WithdrawalServer, body: &Value) -> String {
    let answer = server.post("/v1/transactions", body);
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Creates a contract with this code, and returns its address.
fn create(server: &WithdrawalServer, code: &str) -> String {
    let id = send(server, &json!({"account": "admin0", "data": creation(code)}));
    wait_until_executed(server, &id)["result"]["contract"].as_str().unwrap().to_owned()
}

fn transfer(number: u64) -> Value {
    json!({"account": "admin0", "pay": {"to": recipient(number), "amount": number.to_string()}})
}

fn wait_until_executed(server: &WithdrawalServer, id: &str) -> Value {
    wait_until(&format!("{id} is executed"), || stored(server, id)["state"] == "executed");
    stored(server, id)
}

fn serve(harness: &WithdrawalHarness, name: &str) -> WithdrawalServer {
    harness.serve_calls(&[("--claims-name", name), ("--claims-share", "true")])
}

fn execute(run: Run) {
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    // A restarted node begins with the same block.
    let options = AnvilOptions { genesis_time: Some(1_700_000_000), ..AnvilOptions::default() };
    let harness = WithdrawalHarness::on_postgres_with(ACCOUNTS, &options);
    let mut servers = ["first", "second"].map(|name| Some(serve(&harness, name)));
    let first = servers[0].as_ref().unwrap();
    let contracts = Contracts { counter: create(first, COUNTER), token: create(first, TOKEN) };
    let before = (0..ACCOUNTS).map(|account| harness.nonce(account)).collect::<Vec<_>>();

    let mut requested = Vec::new();
    for number in 1..=run.transactions {
        let account = random.usize(..ACCOUNTS);
        let server = servers[random.usize(..2)].as_ref().unwrap();
        let id = send(server, &Requested::body(number, account, &contracts));
        requested.push(Requested { number, account, id });
        if number % (run.transactions / run.kills) == 0 {
            let killed = random.usize(..2);
            servers[killed].take().unwrap().process.kill();
            servers[killed] = Some(serve(&harness, &format!("instance-{killed}-{number}")));
        }
        if number % (run.transactions / run.node_restarts) == 0 {
            // Anvil would store a block that it adds meanwhile without its receipts.
            harness.anvil.stop_mining().unwrap();
            harness.anvil.restart().unwrap();
        }
    }

    let server = servers[0].as_ref().unwrap();
    for transaction in &requested {
        wait_until_executed(server, &transaction.id);
        transaction.check(&harness, server, &contracts);
    }
    let ids: BTreeSet<&str> = requested.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids.len(), requested.len());
    for (account, before) in before.into_iter().enumerate() {
        let own = requested.iter().filter(|it| it.account == account).count();
        assert_eq!(harness.nonce(account) - before, own as u64, "account {account}");
    }
}

#[test]
fn mixed_transactions_are_executed_once_despite_kills() {
    execute(Run { transactions: 60, kills: 6, node_restarts: 2 });
}

#[test]
fn thousand_mixed_transactions_are_executed_once() {
    execute(Run { transactions: 1_000, kills: 40, node_restarts: 10 });
}

/// Failures of other relayers that their users reported.
mod reported_elsewhere {
    use super::*;

    fn cancel(server: &WithdrawalServer, id: &str) -> Response {
        server.post(&format!("/v1/transactions/{id}/cancel"), &json!({ "reason": "a test" }))
    }

    /// A transaction that cannot be executed takes no nonce, so it leaves no gap behind which others wait.
    #[test]
    fn failing_transactions_leave_no_gap_of_nonces() {
        let harness = WithdrawalHarness::new(1);
        let server = harness.serve_calls(&[]);
        // The code of the contract fails at once.
        let contract = create(&server, "60006000fd");
        let before = harness.nonce(0);
        let ids: Vec<(u64, String)> = (1..=12)
            .map(|number| {
                let body = if number % 3 == 0 {
                    json!({"account": "admin0", "to": contract, "data": "0x01"})
                } else {
                    transfer(number)
                };
                (number, send(&server, &body))
            })
            .collect();
        for (number, id) in ids {
            if number % 3 == 0 {
                let is_failed = || stored(&server, &id)["state"] == "failed";
                wait_until(&format!("{id} has failed"), is_failed);
                let reason = stored(&server, &id)["fail_reason"].to_string();
                assert!(reason.contains("the transaction would fail"), "{reason}");
            } else {
                wait_until_executed(&server, &id);
            }
        }
        assert_eq!(harness.nonce(0) - before, 8);
    }

    /// A transaction whose own price limit is too low keeps no other one of its account waiting.
    #[test]
    fn low_price_limit_of_one_stops_no_other() {
        let harness = WithdrawalHarness::new(1);
        let server = harness.serve_calls(&[]);
        let mut cheap = transfer(1);
        cheap["maximum_gas_price"] = json!("0.000000001");
        let cheap = send(&server, &cheap);
        for number in 2..=6 {
            let id = send(&server, &transfer(number));
            wait_until_executed(&server, &id);
        }
        wait_until("it waits for a lower price", || {
            let waits_for = stored(&server, &cheap)["waits_for"].to_string();
            waits_for.contains("not below the cap")
        });
        assert_eq!(cancel(&server, &cheap).status, 202);
        wait_until("it is cancelled", || stored(&server, &cheap)["state"] == "failed");
    }

    /// A transaction that no block takes can be given up, and its nonce is used by an empty one.
    #[test]
    fn pending_transaction_can_be_given_up() {
        let harness = WithdrawalHarness::new(1);
        let server = harness.serve_calls(&[]);
        harness.anvil.stop_mining().unwrap();
        let id = send(&server, &transfer(3));
        wait_until("it is pending", || stored(&server, &id)["state"] == "pending");
        assert_eq!(cancel(&server, &id).status, 202);
        let is_replaced = || stored(&server, &id)["transactions"].as_array().unwrap().len() > 1;
        wait_until("it is replaced", is_replaced);
        wait_until("the empty one is sent", || {
            stored(&server, &id)["transactions"][1]["sent_at"].is_string()
        });
        harness.anvil.start_mining().unwrap();
        harness.anvil.mine(1).unwrap();
        wait_until("it is cancelled", || stored(&server, &id)["state"] == "failed");
        let balance = json!([recipient(3), "latest"]);
        assert_eq!(harness.anvil.rpc("eth_getBalance", balance).unwrap(), "0x0");
    }
}
