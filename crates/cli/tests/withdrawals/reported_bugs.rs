//! Failures of other programs that send transactions, as their users reported them. The same faults are met by a plain
//! loop, which shows the failure, and by the server, which does not.

use std::collections::HashSet;

use grid_batch_test_chain::{AnvilOptions, Fault, Node};
use grid_batch_test_support::{
    http::{Response, request, send},
    wait::wait_until,
};
use serde_json::{Value, json};

use crate::{
    harness::{WithdrawalHarness, WithdrawalServer},
    plain_loop::{GWEI, PlainLoop},
    transaction_requests::{recipient, transfer},
};

const SEND: &str = "eth_sendRawTransaction";

fn harness() -> WithdrawalHarness {
    WithdrawalHarness::on_node(Node::Anvil, &AnvilOptions::default())
}

/// Makes a chain with a fault for a plain loop, and another one for a server.
fn meet(
    fault: impl Fn(&WithdrawalHarness),
    plain: impl FnOnce(&WithdrawalHarness),
    ours: impl FnOnce(&WithdrawalHarness, &WithdrawalServer),
) {
    let harness = self::harness();
    fault(&harness);
    plain(&harness);
    let harness = self::harness();
    let server = harness.serve_calls(&[]);
    fault(&harness);
    ours(&harness, &server);
}

fn paid(harness: &WithdrawalHarness, number: u64) -> u128 {
    harness.balance(&recipient(number))
}

fn post_with_key(server: &WithdrawalServer, key: &str, body: &Value) -> Response {
    let key = format!("idempotency-key: {key}");
    let headers = ["content-type: application/json", key.as_str()];
    let body = body.to_string();
    send(server.address, &request("POST", "/v1/transactions", &headers, body.as_bytes())).unwrap()
}

fn id_of(response: &Response) -> String {
    response.json()["id"].as_str().unwrap_or_else(|| panic!("{response:?}")).to_owned()
}

/// hyperledger/firefly#1059: a client that gets no answer sends again, and there are two transactions.
#[test]
fn lost_answer_makes_a_loop_pay_twice() {
    meet(
        |harness| harness.proxy.set_next(SEND, 1, Fault::LostAnswer),
        |harness| {
            PlainLoop::new(harness).pay(7, 2).unwrap();
            assert_eq!(paid(harness, 7), 14);
        },
        |harness, server| {
            let sent = post_with_key(server, "invoice 7", &transfer(7));
            let repeated = post_with_key(server, "invoice 7", &transfer(7));
            assert_eq!(id_of(&sent), id_of(&repeated));
            server.wait_until_executed(&id_of(&sent));
            assert_eq!((paid(harness, 7), harness.nonce(0)), (7, 1));
        },
    );
}

/// hyperledger/firefly#1059, with a time-out in the place of a lost answer: the transaction waits for a slow block.
#[test]
fn slow_block_makes_a_loop_pay_twice() {
    meet(
        |harness| harness.anvil.stop_mining().unwrap(),
        |harness| {
            PlainLoop::new(harness).pay(7, 2).unwrap_err();
            harness.anvil.mine(1).unwrap();
            assert_eq!(paid(harness, 7), 14);
        },
        |harness, server| {
            let id = server.send_transaction(&transfer(7));
            wait_until("it is sent again", || harness.proxy.calls(SEND) > 1);
            harness.anvil.start_mining().unwrap();
            harness.anvil.mine(1).unwrap();
            server.wait_until_executed(&id);
            assert_eq!((paid(harness, 7), harness.nonce(0)), (7, 1));
        },
    );
}

/// hyperledger/firefly#1219: the key of a request is stored, and the program ends before it has sent anything. A
/// repetition with the key is refused as a duplicate, and the transaction is never sent.
#[test]
fn key_of_an_unsent_request_stops_its_repetition_in_a_loop() {
    let outage = |harness: &WithdrawalHarness| harness.proxy.set(SEND, Fault::NotForwarded);
    let harness = self::harness();
    outage(&harness);
    let mut keys = HashSet::new();
    let mut pay_once = |key: &'static str| {
        if !keys.insert(key) {
            return Err("this key was used before".to_owned());
        }
        PlainLoop::new(&harness).pay(7, 1)
    };
    pay_once("invoice 7").unwrap_err();
    harness.proxy.clear();
    pay_once("invoice 7").unwrap_err();
    assert_eq!(paid(&harness, 7), 0);

    let harness = self::harness();
    let server = harness.serve_calls(&[]);
    outage(&harness);
    let sent = post_with_key(&server, "invoice 7", &transfer(7));
    wait_until("it is sent", || harness.proxy.calls(SEND) > 0);
    server.process.kill();
    harness.proxy.clear();
    let server = harness.serve_calls(&[]);
    let repeated = post_with_key(&server, "invoice 7", &transfer(7));
    assert_eq!(id_of(&sent), id_of(&repeated));
    server.wait_until_executed(&id_of(&sent));
    assert_eq!((paid(&harness, 7), harness.nonce(0)), (7, 1));
}

/// hyperledger/firefly#1435: a transaction that fails in the estimate of its gas stays in its first state, and each
/// repetition with its key gets an error. A plain loop has no states, so there is nothing to compare.
#[test]
fn failing_request_with_a_key_ends_and_can_be_retried() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve_calls(&[]);
    // The contract fails at once.
    let contract = server.create("60006000fd");
    let call = json!({"account": "admin0", "to": contract, "data": "0x01"});
    let sent = post_with_key(&server, "order 1", &call);
    server.wait_for_transaction(&id_of(&sent), "failed");
    let repeated = post_with_key(&server, "order 1", &call);
    assert_eq!((repeated.status, id_of(&repeated)), (202, id_of(&sent)));
    harness.anvil.rpc("anvil_setCode", json!([contract, "0x00"])).unwrap();
    let retry = format!("/v1/transactions/{}/retry", id_of(&sent));
    assert_eq!(server.post(&retry, &json!({ "reason": "a test" })).status, 200);
    server.wait_until_executed(&id_of(&sent));
}

/// OpenZeppelin/openzeppelin-relayer#683 and #818: the counter of nonces is incremented before a transaction is sent. One
/// that is not sent leaves a gap, behind which all later ones wait. A restart does not help.
#[test]
fn unsent_transaction_leaves_a_gap_in_the_nonces_of_a_loop() {
    meet(
        |harness| harness.proxy.set_next(SEND, 1, Fault::NotForwarded),
        |harness| {
            let mut plain = PlainLoop::with_counter(harness);
            plain.pay(1, 1).unwrap_err();
            plain.pay(2, 1).unwrap_err();
            plain.restart();
            plain.pay(3, 1).unwrap_err();
            harness.anvil.mine(3).unwrap();
            assert_eq!(
                ([1, 2, 3].map(|number| paid(harness, number)), harness.nonce(0)),
                ([0; 3], 0)
            );
        },
        |harness, server| {
            let ids = [1, 2, 3].map(|number| server.send_transaction(&transfer(number)));
            ids.iter().for_each(|id| drop(server.wait_until_executed(id)));
            assert_eq!(
                ([1, 2, 3].map(|number| paid(harness, number)), harness.nonce(0)),
                ([1, 2, 3], 3)
            );
        },
    );
}

/// OpenZeppelin/openzeppelin-relayer#843: during an outage, each transaction takes a nonce and a record. Because all nonces
/// above the chain's have a record, the counter is never set back: 633 nonces were skipped.
#[test]
fn outage_makes_a_loop_skip_nonces() {
    meet(
        |harness| harness.proxy.set(SEND, Fault::NotForwarded),
        |harness| {
            let mut plain = PlainLoop::with_counter(harness);
            (1..=6).for_each(|number| drop(plain.pay(number, 1).unwrap_err()));
            harness.proxy.clear();
            plain.restart();
            (7..=9).for_each(|number| drop(plain.pay(number, 1).unwrap_err()));
            assert_eq!((plain.next_nonce(), harness.nonce(0)), (9, 0));
        },
        |harness, server| {
            let mut ids: Vec<_> =
                (1..=6).map(|it| server.send_transaction(&transfer(it))).collect();
            wait_until("some are sent in vain", || harness.proxy.calls(SEND) >= 3);
            harness.proxy.clear();
            ids.extend((7..=9).map(|it| server.send_transaction(&transfer(it))));
            ids.iter().for_each(|id| drop(server.wait_until_executed(id)));
            assert!((1..=9).all(|number| paid(harness, number) == number.into()));
            assert_eq!(harness.nonce(0), 9);
        },
    );
}

/// OpenZeppelin/openzeppelin-relayer#683: a transaction that would fail takes a nonce, which is never used. A plain loop
/// does not simulate, so its transaction is mined and fails.
#[test]
fn failing_transactions_leave_no_gap_of_nonces() {
    let harness = harness();
    let server = harness.serve_calls(&[]);
    let contract = server.create("60006000fd");
    let before = harness.nonce(0);
    let fails = |number: u64| number.is_multiple_of(3);
    let request = |number: u64| {
        if !fails(number) {
            return transfer(number);
        }
        json!({"account": "admin0", "to": contract, "data": "0x01"})
    };
    let ids: Vec<_> =
        (1..=12).map(|number| (number, server.send_transaction(&request(number)))).collect();
    for (number, id) in ids {
        if fails(number) {
            let reason = server.wait_for_transaction(&id, "failed")["fail_reason"].to_string();
            assert!(reason.contains("the transaction would fail"), "{reason}");
        } else {
            server.wait_until_executed(&id);
        }
    }
    assert_eq!(harness.nonce(0) - before, 8);
}

/// OpenZeppelin/openzeppelin-relayer#808: a transaction offers the highest price that is allowed, and the node drops it
/// during a spike. Afterwards it cannot be replaced, as that needs a higher price, and it is not sent again as it is.
/// All later ones wait for its nonce.
#[test]
fn spike_above_the_cap_stops_a_loop_for_ever() {
    let spike = |harness: &WithdrawalHarness, hashes: &[String]| {
        harness.anvil.set_base_fee(300).unwrap();
        harness.anvil.mine(1).unwrap();
        // Anvil may have dropped them by itself.
        hashes.iter().for_each(|hash| drop(harness.anvil.drop_transaction(hash)));
    };
    let end_spike = |harness: &WithdrawalHarness| {
        harness.anvil.set_base_fee(1).unwrap();
        harness.anvil.start_mining().unwrap();
        harness.anvil.mine(1).unwrap();
    };
    meet(
        |harness| {
            harness.anvil.stop_mining().unwrap();
            harness.anvil.set_base_fee(150).unwrap();
            harness.anvil.mine(1).unwrap();
        },
        |harness| {
            let mut plain = PlainLoop::with_counter(harness);
            let (nonce, cap) = (plain.next_nonce(), 200 * GWEI);
            let hash = plain.send(nonce, 1, 1, cap).unwrap();
            spike(harness, std::slice::from_ref(&hash));
            end_spike(harness);
            plain.bump(nonce, 1, cap).unwrap_err();
            plain.pay(2, 1).unwrap_err();
            assert_eq!(harness.nonce(0), 0);
        },
        |harness, server| {
            let id = server.send_transaction(&transfer(1));
            let pending = server.wait_for_transaction(&id, "pending");
            let hashes = pending["transactions"].as_array().unwrap().iter();
            let hashes: Vec<_> = hashes.map(|it| it["hash"].as_str().unwrap().to_owned()).collect();
            spike(harness, &hashes);
            end_spike(harness);
            let next = server.send_transaction(&transfer(2));
            for id in [&id, &next] {
                server.wait_until_executed(id);
            }
            assert_eq!((paid(harness, 1), paid(harness, 2), harness.nonce(0)), (1, 2, 2));
        },
    );
}

/// OpenZeppelin/openzeppelin-relayer#808, with a cap of the transaction itself: others of its account overtake it.
#[test]
fn low_price_limit_of_one_stops_no_other() {
    let harness = harness();
    let server = harness.serve_calls(&[]);
    let mut cheap = transfer(1);
    cheap["maximum_gas_price"] = json!("0.000000001");
    let cheap = server.send_transaction(&cheap);
    for number in 2..=6 {
        server.wait_until_executed(&server.send_transaction(&transfer(number)));
    }
    wait_until("it waits for a lower price", || {
        server.transaction(&cheap)["waits_for"].to_string().contains("not below the cap")
    });
    server.cancel_transaction(&cheap);
    server.wait_for_transaction(&cheap, "failed");
}

/// hyperledger/firefly-transaction-manager#24: a transaction from an account without funds is retried for ever, and
/// nothing stops it. When there are funds, it is executed although it is not wanted any more.
#[test]
fn unwanted_transaction_cannot_be_stopped_in_a_loop() {
    let ether = 10_u128.pow(18);
    let set_balance = |harness: &WithdrawalHarness, wei| {
        harness.anvil.set_balance(&harness.anvil.accounts()[0].address, wei).unwrap();
    };
    meet(
        |harness| set_balance(harness, 1),
        |harness| {
            let mut plain = PlainLoop::new(harness);
            let error = plain.pay(1, 3).unwrap_err();
            assert!(error.to_lowercase().contains("insufficient funds"), "{error}");
            set_balance(harness, ether);
            plain.pay(1, 1).unwrap();
            assert_eq!(paid(harness, 1), 1);
        },
        |harness, server| {
            let id = server.send_transaction(&transfer(1));
            server.wait_for_transaction(&id, "parked");
            server.cancel_transaction(&id);
            server.wait_for_transaction(&id, "failed");
            set_balance(harness, ether);
            server.wait_until_executed(&server.send_transaction(&transfer(2)));
            assert_eq!((paid(harness, 1), paid(harness, 2), harness.nonce(0)), (0, 2, 1));
        },
    );
}

/// hyperledger/firefly-transaction-manager#24, for a transaction that was sent and that no block takes: an empty one uses
/// its nonce.
#[test]
fn pending_transaction_can_be_given_up() {
    let harness = harness();
    let server = harness.serve_calls(&[]);
    harness.anvil.stop_mining().unwrap();
    let id = server.send_transaction(&transfer(3));
    server.wait_for_transaction(&id, "pending");
    server.cancel_transaction(&id);
    wait_until("it is replaced", || {
        let sent = server.transaction(&id)["transactions"].as_array().unwrap().clone();
        sent.iter().any(|it| it["cancels"] == true && it["sent_at"].is_string())
    });
    harness.anvil.mine(1).unwrap();
    server.wait_for_transaction(&id, "failed");
    assert_eq!(paid(&harness, 3), 0);
}
