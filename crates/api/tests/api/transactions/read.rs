use grid_batch_core::Timestamp;
use grid_batch_core::batches::BatchState;
use grid_batch_withdrawals::{
    AssignedNonce, Decoded, EventLog, FinalTransaction, NewSignedTransaction, NonceOutcome,
    SignedTransaction, WithdrawalDetails, WithdrawalId,
};
use serde_json::json;

use super::test_calls::{
    ID, details, path_of, rules, server, server_with_rules, store_with, withdrawal,
};
use crate::mock_stores::{assert_error, details_of};

fn log(topic: &str) -> EventLog {
    EventLog { address: "0xcc".to_owned(), topics: vec![topic.to_owned()], data: "0x05".to_owned() }
}

/// The nonce of a transaction that is final, with events of these topics.
fn used_nonce(outcome: NonceOutcome, topics: &[&str]) -> AssignedNonce {
    AssignedNonce {
        nonce: 7,
        generation: 1,
        assigned_at: Timestamp::from_micros(0),
        note: None,
        foreign_hash: None,
        outcome: Some(outcome),
        final_transaction: Some(FinalTransaction {
            hash: [2; 32],
            block: 12,
            gas_used: Some(21_000),
            gas_price: Some(1_000_000_000),
            logs: topics.iter().map(|topic| log(topic)).collect(),
        }),
        transactions: vec![signed()],
    }
}

fn signed() -> SignedTransaction {
    let signed = NewSignedTransaction {
        nonce: 7,
        hash: [2; 32],
        bytes: vec![1],
        max_fee: 1,
        tip: 1,
        is_filler: false,
    };
    SignedTransaction::new(signed, Timestamp::from_micros(0))
}

/// A transaction that was executed, with events of these topics.
fn executed(contract: Option<&str>, topics: &[&str]) -> WithdrawalDetails {
    let outcome = NonceOutcome::Executed { contract: contract.map(str::to_owned) };
    let nonce = Some(used_nonce(outcome, topics));
    WithdrawalDetails { nonce, ..details(ID, BatchState::Committed) }
}

#[test]
fn executed_transaction_shows_its_events() {
    let mut details = executed(None, &["0x01", "0x02"]);
    let abi = vec!["event Paid(uint256 amount)".to_owned()];
    details.withdrawal.call.as_mut().unwrap().abi = abi.clone();
    let mut rules = rules();
    rules.expect_decode().withf(move |given, _| given == abi).returning(|_, logs| {
        let paid = || Decoded {
            name: "Paid".to_owned(),
            values: [("amount".to_owned(), "5".to_owned())].into(),
        };
        logs.iter().map(|log| (log.topics == ["0x01"]).then(paid)).collect()
    });
    let json = server_with_rules(store_with(details), rules).get(&path_of(ID)).json();
    assert_eq!(
        (&json["state"], &json["transactions"][0]["nonce"]),
        (&json!("executed"), &json!(7))
    );
    assert!(json.get("waits_for").is_none() && json.get("fail_reason").is_none(), "{json}");
    let expected = json!({
        "hash": format!("0x{}", "02".repeat(32)), "block": 12, "gas_used": 21_000,
        "gas_price_gwei": "1", "fee": "21000000000000", "fee_ether": "0.000021",
        "events": [
            {
                "address": "0xcc", "topics": ["0x01"], "data": "0x05",
                "name": "Paid", "values": { "amount": "5" },
            },
            { "address": "0xcc", "topics": ["0x02"], "data": "0x05" },
        ],
    });
    assert_eq!(json["result"], expected);
}

#[test]
fn new_contract_is_named_in_the_result() {
    let json = server(store_with(executed(Some("0xdd"), &["0x01"]))).get(&path_of(ID)).json();
    assert_eq!(json["result"]["contract"], "0xdd");
    let event = json!({ "address": "0xcc", "topics": ["0x01"], "data": "0x05" });
    assert_eq!(json["result"]["events"], json!([event]), "nothing is declared");
}

#[test]
fn failed_transaction_shows_its_reason_and_cost() {
    let reverted = WithdrawalDetails {
        nonce: Some(used_nonce(NonceOutcome::Reverted, &[])),
        fail_reason: Some("reverted in block 12: not the owner".to_owned()),
        ..details(ID, BatchState::Invalid)
    };
    let json = server(store_with(reverted)).get(&path_of(ID)).json();
    assert_eq!(json["state"], "failed");
    assert_eq!(json["fail_reason"], "reverted in block 12: not the owner");
    assert_eq!(json["result"]["fee"], "21000000000000");
}

#[test]
fn result_of_an_earlier_generation_is_not_shown() {
    let retried = WithdrawalDetails {
        nonce: Some(used_nonce(NonceOutcome::Reverted, &[])),
        generation: 2,
        ..details(ID, BatchState::New)
    };
    let json = server(store_with(retried)).get(&path_of(ID)).json();
    assert!(json.get("result").is_none(), "{json}");
    assert_eq!(json["waits_for"], "its submission, as the next of its account");
}

#[test]
fn only_transactions_are_found() {
    let unknown = WithdrawalId::from_bytes([9; 16]);
    let store = store_with(details_of(withdrawal(ID), BatchState::New));
    let server = server(store);
    for id in [ID, unknown] {
        let response = server.get(&path_of(id));
        assert_error(&response, (404, 1025));
        assert_eq!(response.message(), format!("there is no transaction {id}"));
    }
    assert_eq!(server.get(&format!("/withdrawals/{ID}")).status, 200);
    assert_error(&server.get("/v1/transactions/zz"), (400, 60));
}

#[test]
fn transaction_is_no_withdrawal() {
    let server = server(store_with(details(ID, BatchState::New)));
    let response = server.get(&format!("/withdrawals/{ID}"));
    assert_error(&response, (404, 1025));
    assert_eq!(response.message(), format!("there is no withdrawal {ID}"));
    assert_eq!(server.get(&path_of(ID)).status, 200);
}
