//! Transactions of all kinds from several accounts by two instances, while instances and the node are killed: each is
//! executed exactly once.

use std::collections::BTreeSet;

use fastrand::Rng;
use grid_batch_test_chain::AnvilOptions;
use serde_json::{Value, json};

use crate::{
    harness::{WithdrawalHarness, WithdrawalServer},
    transaction_requests::{COUNTER, TOKEN, creation, recipient},
};

const ACCOUNTS: usize = 3;

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
        let stored = server.transaction(&self.id);
        let number = self.number;
        match number % 4 {
            0 => {
                assert_eq!(harness.balance(&recipient(number)), number.into(), "{stored}");
            }
            1 => {
                let count = harness.slot(&contracts.counter, &format!("{number:x}"));
                assert_eq!(count, format!("0x{:064x}", 1), "{stored}");
            }
            2 => {
                let balance = harness.slot(&contracts.token, &recipient(number)[2..]);
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
    let contracts = Contracts { counter: first.create(COUNTER), token: first.create(TOKEN) };
    let before = (0..ACCOUNTS).map(|account| harness.nonce(account)).collect::<Vec<_>>();

    let mut requested = Vec::new();
    for number in 1..=run.transactions {
        let account = random.usize(..ACCOUNTS);
        let server = servers[random.usize(..2)].as_ref().unwrap();
        let id = server.send_transaction(&Requested::body(number, account, &contracts));
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
        server.wait_until_executed(&transaction.id);
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
