//! Several nodes of one chain.

use grid_batch_test_chain::{Anvil, AnvilOptions, Mining, Pool};

use crate::world::{Serving, World};

#[test]
fn a_node_that_is_cut_off_and_answers_hides_no_other() {
    let world = World::new(1);
    let alone = AnvilOptions { mining: Mining::Manual, ..AnvilOptions::default() };
    let cut_off = Anvil::start(&alone).unwrap();
    let there = Pool::deploy(&cut_off, &cut_off.accounts()[0]).unwrap();
    assert_eq!(there.address(), world.pools[0].address());
    let mut command = world.command(&[]);
    command.env("GRID_BATCH_LEDGER_URLS", format!("{},{}", cut_off.url(), world.proxy.url()));
    let serving = Serving::start(command);
    let id = serving.schedule(&world.order(0, 1));
    serving.until_withdrawn(&[id]);
    assert_eq!(world.paid(0), [1]);
}
