//! Two pools of one gas admin: the first one's cap is below the gas price, and the second one pays on.

use std::time::Duration;

use grid_batch_test_chain::Stop;
use grid_batch_test_support::wait::wait_until;

use crate::harness::{WithdrawalHarness, WithdrawalServer};

/// Gwei: above the cap of the first pool, and below that of the second one.
const DEAR: u64 = 150;
const CHEAP: u64 = 50;

/// Where the proxy stops the server before it is killed.
type KillPoint = fn(&WithdrawalHarness) -> Stop;

fn two_pools() -> WithdrawalHarness {
    let harness = WithdrawalHarness::new(2);
    harness.set_pool_owner(1, 0);
    harness.anvil.stop_mining().unwrap();
    harness.anvil.set_base_fee(DEAR).unwrap();
    harness
}

fn serve(harness: &WithdrawalHarness) -> WithdrawalServer {
    let [first, second] = [0, 1].map(|pool| harness.pools[pool].address());
    let pools = format!("{first}=admin0,{second}=admin0");
    let cap = format!("{first}=100");
    harness.serve_with(&[("--pools-gas-admin", &pools), ("--pools-maximum-gas-price", &cap)])
}

/// Adds a block, and keeps the price from falling as it does after a block with few transactions.
fn mine_dear(harness: &WithdrawalHarness) {
    harness.anvil.mine(1).unwrap();
    harness.anvil.set_base_fee(DEAR).unwrap();
}

fn wait_until_paid(harness: &WithdrawalHarness, server: &WithdrawalServer, id: &str) {
    wait_until("the withdrawal of the second pool is made", || {
        mine_dear(harness);
        server.withdrawal(id)["state"] == "withdrawn"
    });
}

fn pay_all_at_a_low_price(harness: &WithdrawalHarness, server: &WithdrawalServer, ids: &[String]) {
    harness.anvil.set_base_fee(CHEAP).unwrap();
    harness.anvil.start_mining().unwrap();
    let withdrawals = server.wait_until_withdrawn(ids);
    for withdrawal in &withdrawals {
        let transactions = withdrawal["transactions"].as_array().unwrap();
        let nonce = &transactions[0]["nonce"];
        assert!(transactions.iter().all(|it| it["nonce"] == *nonce), "{withdrawal}");
    }
}

fn schedule(
    harness: &WithdrawalHarness,
    server: &WithdrawalServer,
    amounts: [u64; 2],
) -> [String; 2] {
    let [first, second] = amounts;
    [(0, first), (1, second)]
        .map(|(pool, amount)| server.schedule(&harness.withdrawal_request(pool, amount)))
}

#[test]
fn other_pool_of_the_gas_admin_pays_on() {
    let harness = two_pools();
    let server = serve(&harness);
    let ids = [[1, 1], [2, 2], [3, 3]].map(|amounts| schedule(&harness, &server, amounts));
    let ids = ids.concat();
    let parked = server.wait_for_state(&ids[0], "parked");
    let reason = parked["waits_for"].as_str().unwrap();
    assert!(reason.contains("cap of 100 gwei"), "{reason}");
    assert!(reason.contains("only this pool is parked"), "{reason}");
    let service = server.get("/v1/services").json()["data"][0].clone();
    assert!(service["parked"].as_str().unwrap().ends_with("only this pool is parked"), "{service}");
    wait_until_paid(&harness, &server, &ids[5]);
    assert_eq!((harness.paid(0), harness.paid(1)), (vec![], vec![1, 2, 3]));
    let queue = server.get("/v1/gas-admins").json()["data"][0]["queue"].clone();
    assert_eq!((&queue["open"], &queue["parked"]), (&3.into(), &1.into()), "{queue}");

    pay_all_at_a_low_price(&harness, &server, &ids);
    assert_eq!((harness.paid(0), harness.paid(1)), (vec![1, 2, 3], vec![1, 2, 3]));
    assert_eq!(harness.nonce(0), 6);
}

/// Kills a server at each of these points while the first pool is parked, and pays all when the price falls.
fn assert_paid_once_after_kills(harness: &WithdrawalHarness, kill_points: &[KillPoint]) {
    let mut ids: Vec<String> = Vec::new();
    for (kill_point, amount) in kill_points.iter().zip(1..) {
        let server = serve(harness);
        if amount > 1 {
            server.wait_for_state(&ids[0], "parked");
        }
        let stop = kill_point(harness);
        ids.extend(schedule(harness, &server, [amount, amount]));
        wait_until("the server reaches the kill point", || {
            mine_dear(harness);
            stop.wait(Duration::from_millis(50))
        });
        server.process.kill();
        stop.cut();
        assert_eq!(harness.paid(0), [0; 0]);
    }
    let server = serve(harness);
    wait_until_paid(harness, &server, ids.last().unwrap());
    assert_eq!(harness.paid(0), [0; 0]);
    pay_all_at_a_low_price(harness, &server, &ids);
    let all: Vec<u64> = (1..).take(kill_points.len()).collect();
    assert_eq!((harness.paid(0), harness.paid(1)), (all.clone(), all));
    assert_eq!(harness.nonce(0), 2 * u64::try_from(kill_points.len()).unwrap());
}

#[test]
fn kills_while_a_pool_is_parked_pay_once_in_order() {
    assert_paid_once_after_kills(
        &two_pools(),
        &[
            |harness| harness.proxy.stop_before("eth_feeHistory", 1),
            |harness| harness.proxy.stop_after("eth_feeHistory", 2),
            |harness| harness.proxy.stop_before("eth_getBalance", 1),
            |harness| harness.proxy.stop_before("eth_sendRawTransaction", 1),
            |harness| harness.proxy.stop_after("eth_sendRawTransaction", 1),
            |harness| harness.proxy.stop_before("eth_getTransactionReceipt", 1),
            // If the first one shows the transaction in a block, there is no second one.
            |harness| harness.proxy.stop_after("eth_getTransactionReceipt", 1),
        ],
    );
}
