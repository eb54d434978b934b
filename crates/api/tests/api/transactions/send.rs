use std::{collections::HashSet, sync::mpsc};

use grid_batch_core::Timestamp;
use grid_batch_core::batches::BatchState;
use grid_batch_withdrawals::{
    CallError, CallRequest, FunctionCall, PayRequest, ScheduleOutcome, Withdrawal,
    WithdrawalConflict, mocks::MockWithdrawalStore,
};
use serde_json::{Value, json};

use super::test_calls::{ACCOUNT, PATH, addresses, details, server, server_with_rules};
use crate::{
    client::Response,
    mock_stores::{MockServer, assert_error, unavailable},
    test_server::service,
};

const DEADLINE: &str = "2999-01-01T00:00:00.000000Z";
const DEADLINE_MICROS: i64 = 32_472_144_000_000_000;
const STORED: ScheduleOutcome =
    ScheduleOutcome::Stored { created_at: Timestamp::from_micros(5_000_000), ahead: 3 };

fn post(server: &MockServer, body: &Value) -> Response {
    server.post(PATH, body.to_string().as_bytes())
}

fn post_with_key(server: &MockServer, key: &str, body: &Value) -> Response {
    server.post_with_key(PATH, key, body.to_string().as_bytes())
}

/// A store that accepts everything.
fn accepting_store() -> MockWithdrawalStore {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(|all| Ok(vec![Ok(STORED); all.len()]));
    store
}

fn id_of(response: &Response) -> String {
    assert_eq!(response.status, 202, "{}", response.json());
    response.json()["id"].as_str().unwrap().to_owned()
}

#[test]
fn transaction_is_stored_and_shown() {
    let (sender, stored) = mpsc::channel();
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(move |all| {
        sender.send(all.to_vec()).unwrap();
        Ok(vec![Ok(STORED)])
    });
    let body = json!({
        "account": "payer", "to": "0xCC", "value": "7", "data": "0x01", "gas_limit": 21_000,
        "maximum_gas_price": "30.5", "deadline": "2999-01-01T00:00:00Z", "label": "invoice 17",
        "abi": ["event Paid(uint256 amount)"],
    });
    let response = post_with_key(&server(store), "key", &body);
    let id = id_of(&response);
    let path = format!("{PATH}/{id}");
    assert_eq!(response.header("location"), Some(path.as_str()));
    let stored: Withdrawal = stored.recv().unwrap().remove(0);
    let expected = json!({
        "id": id, "account": ACCOUNT, "to": "0xcc", "value": "7", "data": "0x01",
        "gas_limit": 21_000, "maximum_gas_price_gwei": "30.5", "deadline": DEADLINE,
        "label": "invoice 17", "abi": ["event Paid(uint256 amount)"], "idempotency_key": "key",
        "state": "scheduled", "waits_for": "3 earlier transactions of its account",
        "generation": 1, "attempts": 0, "transactions": [],
        "created_at": "1970-01-01T00:00:05.000000Z", "ended_at": null,
        "batch": stored.id.batch_id(1).to_string(), "link": format!("http://grid.test{path}"),
    });
    assert_eq!(response.json(), expected);
    let call = stored.call.clone().unwrap();
    assert_eq!(call.deadline, Some(DEADLINE_MICROS));
    let id = id.parse().unwrap();
    let key = Some("key".to_owned());
    assert_eq!(stored, Withdrawal::of_call(id, service(ACCOUNT), call, key));
}

#[test]
fn every_field_reaches_the_rules() {
    let mut rules = addresses();
    let expected = CallRequest {
        to: Some("0xCC".to_owned()),
        value: Some("7".to_owned()),
        data: Some("0x01".to_owned()),
        function: Some(FunctionCall {
            signature: "f(address,uint256[],bool)".to_owned(),
            arguments: vec![json!("0xdd"), json!([1, "2"]), json!(true)],
        }),
        pay: Some(PayRequest {
            to: "0xee".to_owned(),
            amount: "9".to_owned(),
            token: Some("0xff".to_owned()),
        }),
        gas_limit: Some(21_000),
        maximum_gas_price: Some("30.5".to_owned()),
        deadline: Some(Timestamp::from_micros(DEADLINE_MICROS)),
        label: Some("invoice 17".to_owned()),
        abi: vec!["event Paid(uint256 amount)".to_owned()],
    };
    rules
        .expect_call()
        .withf(move |account, request| *account == service(ACCOUNT) && *request == expected)
        .returning(|_, _| Err(CallError { field: "pay", rule: "there are others".to_owned() }));
    let body = json!({
        "account": "payer", "to": "0xCC", "value": "7", "data": "0x01",
        "call": {
            "signature": "f(address,uint256[],bool)", "arguments": ["0xdd", [1, "2"], true],
        },
        "pay": { "to": "0xee", "amount": "9", "token": "0xff" },
        "gas_limit": 21_000, "maximum_gas_price": "30.5", "deadline": DEADLINE,
        "label": "invoice 17", "abi": ["event Paid(uint256 amount)"],
    });
    let refused = post(&server_with_rules(MockWithdrawalStore::new(), rules), &body);
    assert_error(&refused, (400, 1023));
    assert_eq!(refused.message(), "invalid pay: there are others");
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
}

#[test]
fn transaction_that_is_not_allowed_is_refused() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().never();
    store.expect_withdrawal().returning(|_| Ok(None));
    let body = json!({ "account": "payer", "to": "0xforbidden" });
    let refused = post(&server(store), &body);
    assert_error(&refused, (403, 1043));
    assert_eq!(refused.message(), "not there");
}

#[test]
fn invalid_fields_are_refused_with_their_rule() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().never();
    store.expect_withdrawal().returning(|_| Ok(None));
    let server = server(store);
    for (body, code, words) in [
        (json!({}), 1023, "invalid account: it is missing"),
        (json!({ "account": "x" }), 1023, "invalid account: \"x\" is no account"),
        (json!({ "account": "payer", "value": 5 }), 1023, "invalid value: it is a number"),
        (json!({ "account": "payer", "gas_limit": "5" }), 1023, "it must be a whole number"),
        (json!({ "account": "payer", "gas_limit": -5 }), 1023, "it must be a whole number"),
        (json!({ "account": "payer", "label": "" }), 1023, "invalid label: a label must have 1 to"),
        (json!({ "account": "payer", "deadline": "soon" }), 1023, "it must be a time such as"),
        (
            json!({ "account": "payer", "deadline": "2020-01-01T00:00:00Z" }),
            1023,
            "invalid deadline: it must be later than now, 2",
        ),
        (json!({ "account": "payer", "call": {} }), 1023, "invalid signature: it is missing"),
        (
            json!({ "account": "payer", "pay": "5" }),
            1023,
            "invalid pay: it is a string; it must be an object",
        ),
        (json!({ "account": "payer", "pay": { "to": "0x" } }), 1023, "invalid amount"),
        (json!({ "account": "payer", "abi": "event E()" }), 1023, "it must be an array"),
        (json!({ "account": "payer", "beneficiary": "0x" }), 1022, "\"beneficiary\""),
        (json!([]), 1022, "expected an object"),
    ] {
        let response = post(&server, &body);
        assert_eq!(response.error(), (400, code), "{body}");
        assert!(response.message().contains(words), "{body}: {}", response.message());
    }
    let with_query = server.post(&format!("{PATH}?dry_run=true"), br#"{"account":"payer"}"#);
    assert_error(&with_query, (400, 1007));
    let long_key = "k".repeat(256);
    assert_error(&post_with_key(&server, &long_key, &json!({ "account": "payer" })), (400, 1024));
}

#[test]
fn code_of_a_contract_fits_into_a_body() {
    let server = server(accepting_store());
    let with_bytes =
        |bytes: usize| post(&server, &json!({ "account": "payer", "data": "ff".repeat(bytes) }));
    id_of(&with_bytes(128 * 1024));
    let refused = with_bytes(256 * 1024);
    assert_error(&refused, (413, 1003));
    assert!(refused.message().contains("no transaction needs"), "{}", refused.message());
}

#[test]
fn ids_follow_from_the_account_and_the_key() {
    let server = server(accepting_store());
    let send = |account: &str, key: &str| {
        id_of(&post_with_key(&server, key, &json!({ "account": account })))
    };
    assert_eq!(send("payer", "a"), send("payer", "a"));
    let without_key = || id_of(&post(&server, &json!({ "account": "payer" })));
    let ids =
        [send("payer", "a"), send("payer", "b"), send("other", "a"), without_key(), without_key()];
    assert_eq!(HashSet::from(ids).len(), 5);
}

#[test]
fn same_key_returns_the_stored_transaction() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(|_| Ok(vec![Ok(ScheduleOutcome::AlreadyStored)]));
    store.expect_withdrawal().returning(|id| Ok(Some(details(*id, BatchState::Committed))));
    let response = post_with_key(&server(store), "key", &json!({ "account": "payer" }));
    id_of(&response);
    assert_eq!(response.json()["state"], "executed");
}

#[test]
fn same_key_with_other_contents_is_a_conflict() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(|all| {
        let stored = Box::new(Withdrawal { amount: "2".to_owned(), ..all[0].clone() });
        Ok(vec![Err(WithdrawalConflict::OtherTerms { stored })])
    });
    let response = post_with_key(&server(store), "key", &json!({ "account": "payer" }));
    assert_error(&response, (409, 1026));
    let link = response.json()["link"].as_str().unwrap().to_owned();
    let (_, id) = link.split_once("http://grid.test/v1/transactions/").unwrap();
    let expected = format!("this idempotency key was used for another transaction, {id}");
    assert_eq!(response.message(), expected);
}

#[test]
fn repetition_is_answered_after_its_deadline() {
    let mut store = MockWithdrawalStore::new();
    store.expect_withdrawal().returning(|id| Ok(Some(details(*id, BatchState::Invalid))));
    store.expect_schedule().returning(|_| Ok(vec![Ok(ScheduleOutcome::AlreadyStored)]));
    let body = json!({ "account": "payer", "deadline": "2020-01-01T00:00:00Z" });
    let response = post_with_key(&server(store), "key", &body);
    id_of(&response);
    assert_eq!(response.json()["state"], "failed");
}

#[test]
fn failed_schedule_names_the_transaction_to_check() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().times(1).returning(|_| unavailable());
    store.expect_schedule().returning(|_| Ok(vec![Ok(STORED)]));
    let server = server(store);
    let send = || post_with_key(&server, "key", &json!({ "account": "payer" }));
    let failed = send();
    assert_error(&failed, (503, 1012));
    let path = format!("{PATH}/{}", id_of(&send()));
    assert!(failed.message().contains(&path), "{}", failed.message());
}

#[test]
fn full_queue_of_the_account_is_reported() {
    let mut store = MockWithdrawalStore::new();
    store.expect_schedule().returning(|_| {
        let service_id = service(ACCOUNT);
        Ok(vec![Err(WithdrawalConflict::QueueFull { service_id, open: 5, limit: 5 })])
    });
    assert_error(&post(&server(store), &json!({ "account": "payer" })), (429, 1018));
}

#[test]
fn new_contract_has_no_address_to_call() {
    let server = server(accepting_store());
    let created = post(&server, &json!({ "account": "payer", "data": "0x60" })).json();
    assert!(created.get("to").is_none(), "{created}");
    for field in ["gas_limit", "maximum_gas_price_gwei", "deadline", "label", "abi", "result"] {
        assert!(created.get(field).is_none(), "{field}: {created}");
    }
}
