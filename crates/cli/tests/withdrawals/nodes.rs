//! Several nodes of one chain.

use grid_batch_test_chain::{Anvil, AnvilOptions, Mining, Pool};
use grid_batch_test_support::process::run;

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
    assert!(message.contains("another ledger") && message.contains("chain 31337"), "{message}");
    assert!(pool.polls(&other).unwrap().is_empty());
}
