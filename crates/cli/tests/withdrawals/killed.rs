//! Killed with -9 at every step between scheduling and confirmation: a withdrawal is made once.

use std::time::Duration;

use grid_batch_test_chain::Stop;

use crate::world::World;

const PATIENCE: Duration = Duration::from_secs(30);

/// Where the program stands when it is killed.
type Place = fn(&World) -> Stop;

/// Schedules two withdrawals, kills the program at the place, starts it again, and sees that both
/// are made once, in order.
fn killed_at(world: &World, place: Place) {
    let before = world.serve();
    let stop = place(world);
    let ids = [1, 2].map(|amount| before.schedule(&world.order(0, amount)));
    assert!(stop.wait(PATIENCE), "it never came there: {:?}", world.proxy.log());
    before.program.kill();
    stop.cut();

    let after = world.serve();
    let told = after.until_withdrawn(&ids);
    assert_eq!(world.paid(0), [1, 2]);
    for (told, poll) in told.iter().zip(world.polls(0)) {
        assert_eq!(told["withdrawal_id"], poll.id.as_str());
        let transactions = told["transactions"].as_array().unwrap();
        assert!(transactions.iter().any(|t| t["hash"] == poll.transaction_hash.as_str()), "{told}");
        assert!(transactions.iter().all(|t| t["nonce"] == poll.nonce), "one nonce alone: {told}");
    }
    assert_eq!(world.nonce(0), 2);
}

/// A test for each place, on the database that needs no server.
macro_rules! places {
    ($($name:ident: $place:expr;)*) => {$(
        #[test]
        fn $name() {
            killed_at(&World::new(1), $place);
        }
    )*};
}

places! {
    killed_before_the_chain_is_asked_its_name: |w| w.proxy.stop_before("eth_chainId", 1);
    killed_before_the_price_is_known: |w| w.proxy.stop_before("eth_feeHistory", 1);
    killed_before_the_pool_is_looked_at: |w| w.proxy.stop_before("eth_getCode", 1);
    killed_before_the_call_is_simulated: |w| w.proxy.stop_before("eth_call", 1);
    killed_before_the_gas_is_estimated: |w| w.proxy.stop_before("eth_estimateGas", 1);
    killed_before_the_balance_is_known: |w| w.proxy.stop_before("eth_getBalance", 1);
    killed_before_the_nonce_is_known: |w| w.proxy.stop_before("eth_getTransactionCount", 1);
    killed_after_the_nonce_is_known: |w| w.proxy.stop_after("eth_getTransactionCount", 1);
    killed_when_it_is_signed_and_not_sent: |w| w.proxy.stop_before("eth_sendRawTransaction", 1);
    killed_when_it_is_sent_and_not_answered: |w| w.proxy.stop_after("eth_sendRawTransaction", 1);
    killed_before_the_receipt_is_asked_for: |w| w.proxy.stop_before("eth_getTransactionReceipt", 1);
    killed_after_the_receipt_is_given: |w| w.proxy.stop_after("eth_getTransactionReceipt", 1);
    killed_when_the_second_is_signed_and_not_sent:
        |w| w.proxy.stop_before("eth_sendRawTransaction", 2);
    killed_when_the_second_is_sent_and_not_answered:
        |w| w.proxy.stop_after("eth_sendRawTransaction", 2);
}

#[test]
fn killed_on_postgres_when_it_is_signed_and_not_sent() {
    killed_at(&World::on_postgres(1), |w| w.proxy.stop_before("eth_sendRawTransaction", 1));
}

#[test]
fn killed_on_postgres_when_it_is_sent_and_not_answered() {
    killed_at(&World::on_postgres(1), |w| w.proxy.stop_after("eth_sendRawTransaction", 1));
}

#[test]
fn killed_as_soon_as_it_is_promised() {
    let world = World::new(1);
    let before = world.serve();
    let id = before.schedule(&world.order(0, 1));
    before.program.kill();
    world.serve().until_withdrawn(&[id]);
    assert_eq!(world.paid(0), [1]);
}

#[test]
fn killed_when_it_is_mined_and_not_final() {
    let world = World::new(1);
    let deep = [("--evm-confirmations", "3")];
    let before = world.serve_with(&deep);
    let id = before.schedule(&world.order(0, 1));
    let told = before.until(&id, "mined");
    assert!(told["withdrawal_id"].is_null() && told["fail_reason"].is_null(), "{told}");
    before.program.kill();

    let after = world.serve_with(&deep);
    assert_eq!(after.until(&id, "mined")["transactions"], told["transactions"]);
    world.anvil.mine(2).unwrap();
    after.until_withdrawn(&[id]);
    assert_eq!(world.paid(0), [1]);
}

#[test]
fn killed_again_and_again_every_withdrawal_is_made_once_and_in_order() {
    let world = World::new(2);
    let mut ids = Vec::new();
    for round in 0..6 {
        let serving = world.serve();
        for pool in 0..2 {
            ids.push(serving.schedule(&world.order(pool, 1 + round)));
        }
        let (method, nth) = [
            ("eth_sendRawTransaction", 1),
            ("eth_getTransactionReceipt", 2),
            ("eth_sendRawTransaction", 2),
        ][round as usize % 3];
        let stop = match round % 2 {
            0 => world.proxy.stop_after(method, nth),
            _ => world.proxy.stop_before(method, nth),
        };
        // Where all has been made already there is nothing to stop at.
        stop.wait(Duration::from_secs(2));
        serving.program.kill();
        stop.cut();
    }
    world.serve().until_withdrawn(&ids);
    for pool in 0..2 {
        assert_eq!(world.paid(pool), [1, 2, 3, 4, 5, 6]);
        assert_eq!(world.nonce(pool), 6);
    }
}
