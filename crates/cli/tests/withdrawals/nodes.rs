//! Several nodes of one chain.

use grid_batch_test_chain::{Anvil, AnvilOptions, Mining, Pool};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

#[test]
fn isolated_node_does_not_hide_another() {
    let harness = WithdrawalHarness::new(1);
    let options = AnvilOptions { mining: Mining::Manual, ..AnvilOptions::default() };
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
