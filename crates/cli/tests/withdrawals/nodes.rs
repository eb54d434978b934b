//! Several nodes of one chain.

use grid_batch_test_chain::{Anvil, AnvilOptions, Fault, FaultProxy, Mining, Pool};
use grid_batch_test_support::{process::run, wait::wait_for};
use serde_json::json;

use crate::harness::{WithdrawalHarness, WithdrawalServer};

#[test]
fn isolated_node_does_not_hide_another() {
    let harness = WithdrawalHarness::new(1);
    let genesis_time = Some(harness.genesis_time());
    let options = AnvilOptions { mining: Mining::Manual, genesis_time, ..AnvilOptions::default() };
    let isolated = Anvil::start(&options).unwrap();
    let pool = Pool::deploy(&isolated, &isolated.accounts()[0]).unwrap();
    assert_eq!(pool.address(), harness.pools[0].address());
    let mut command = harness.command(&[]);
    command.env("GRID_BATCH_LEDGER_URLS", format!("{},{}", isolated.url(), harness.proxy.url()));
    let server = WithdrawalServer::start(command);
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_until_withdrawn(&[id]);
    assert_eq!(harness.paid(0), [1]);
}

#[test]
fn server_of_another_chain_with_the_same_id_stops() {
    let harness = WithdrawalHarness::on_postgres(1);
    let server = harness.serve();
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_until_withdrawn(&[id]);
    drop(server);

    let genesis_time = Some(harness.genesis_time() - 60);
    let other = Anvil::start(&AnvilOptions { genesis_time, ..AnvilOptions::default() }).unwrap();
    let pool = Pool::deploy(&other, &other.accounts()[0]).unwrap();
    assert_eq!(pool.address(), harness.pools[0].address());
    let mut command = harness.command(&[("--log", "off")]);
    command.env("GRID_BATCH_LEDGER_URLS", other.url());
    let output = run(command);
    let message = output.error_message();
    let first_block = |anvil: &Anvil| {
        let block = anvil.rpc("eth_getBlockByNumber", json!(["0x0", false])).unwrap();
        format!("chain 31337, genesis block {}", &block["hash"].as_str().unwrap()[..16])
    };
    for part in ["another ledger", &first_block(&harness.anvil), &first_block(&other)] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(message.contains("grid-batch ledger adopt"), "{message}");
    assert!(pool.polls(&other).unwrap().is_empty());
}

#[test]
fn node_of_another_chain_is_not_used() {
    let harness = WithdrawalHarness::new(1);
    let other = FaultProxy::start(harness.anvil.url()).unwrap();
    let move_to_another_chain = || other.set("eth_chainId", Fault::Result(json!("0x5")));
    // The database is not bound yet: the settings tell which chain is the right one.
    move_to_another_chain();
    let mut command = harness.command(&[]);
    command.env("GRID_BATCH_LEDGER_URLS", format!("{},{}", other.url(), harness.proxy.url()));
    let server = WithdrawalServer::start(command);
    for amount in 1..3 {
        let id = server.schedule(&harness.withdrawal_request(0, amount));
        server.wait_until_withdrawn(&[id]);
        let health = wait_for("the health tells of the node", || {
            let health = server.get("/health").json();
            (health["status"] == "degraded").then_some(health)
        });
        let reason = health["reasons"][0].as_str().unwrap();
        assert!(reason.contains(other.url()) && reason.contains("chain 5"), "{health}");
        assert_eq!(other.sent(), []);
        // It is back, and then replaced while the server runs.
        other.clear();
        wait_for("all is well", || (server.get("/health").json()["status"] == "ok").then_some(()));
        move_to_another_chain();
    }
}

/// The node answers as one that has just started to sync: it has no state yet.
fn start_syncing(node: &FaultProxy) {
    let progress = json!({"startingBlock": "0x0", "currentBlock": "0x5", "highestBlock": "0x384"});
    node.set("eth_syncing", Fault::Result(progress));
    node.set("eth_getCode", Fault::Result(json!("0x")));
    node.set("eth_call", Fault::RpcError { code: 3, message: "execution reverted".to_owned() });
}

#[test]
fn syncing_node_fails_no_withdrawal() {
    let harness = WithdrawalHarness::new(1);
    start_syncing(&harness.proxy);
    let server = harness.serve();
    let ids: Vec<String> =
        (1..=10).map(|amount| server.schedule(&harness.withdrawal_request(0, amount))).collect();
    let first = wait_for("the first withdrawal is tried", || {
        let withdrawal = server.withdrawal(&ids[0]);
        (withdrawal["state"] != "scheduled" && withdrawal["state"] != "submitting")
            .then_some(withdrawal)
    });
    assert_eq!(first["state"], "parked", "{first}");
    let waits_for = first["waits_for"].as_str().unwrap();
    assert!(waits_for.contains("is syncing: block 5 of 900"), "{first}");
    harness.proxy.clear();
    server.wait_until_withdrawn(&ids);
    assert_eq!(harness.paid(0), (1..=10).collect::<Vec<u64>>());
}

#[test]
fn node_without_the_first_block_is_used() {
    let harness = WithdrawalHarness::new(1);
    harness.proxy.set_next("eth_getBlockByNumber", 1, Fault::Null);
    let server = harness.serve();
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_until_withdrawn(&[id]);
    drop(server);
    // A node that shows its first block completes what the database is bound to.
    let server = harness.serve();
    let id = server.schedule(&harness.withdrawal_request(0, 2));
    server.wait_until_withdrawn(&[id]);
    let output = run(harness.command_with(&["ledger", "show"]));
    let database = output.stdout.split("The node").next().unwrap();
    assert!(database.contains("chain 31337, genesis block 0x"), "{output:?}");
}
