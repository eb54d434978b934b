//! Lists and state, for clients that read from a ledger.

use grid_batch_ledger_sim::StateOperation;
use grid_batch_protocol::{Batch, BatchBuilder};
use serde_json::{Value, json};

use crate::{
    batches::key,
    client::{Request, Response},
    ledgers::{Ledger, authorized, sawtooth, scabbard},
};

const ADDRESS: &str = "1cf12600000000000000000000000000000000000000000000000000000000000000a7";

fn set(number: u64) -> Batch {
    let operation = StateOperation::Set { address: ADDRESS.to_owned(), number };
    let transaction = StateOperation::transaction(&[operation])
        .inputs([ADDRESS])
        .outputs([ADDRESS])
        .nonce(number.to_string())
        .sign(&key(), &key().public_key());
    BatchBuilder::new().transaction(transaction).sign(&key())
}

fn request(ledger: &Ledger, path: &str) -> Response {
    ledger.send(&authorized(Request::get(path)))
}

fn get(ledger: &Ledger, path: &str) -> Value {
    let response = request(ledger, path);
    assert!(response.status_line.contains("200"), "{path}: {}", response.status_line);
    response.json()
}

#[test]
fn sawtooth_lists_what_is_committed_with_pages() {
    let ledger = sawtooth(|b| b);
    let batches = [1, 2, 3].map(set);
    batches.iter().for_each(|batch| drop(ledger.submit_one(batch)));
    ledger.advance(10);
    let ids = |list: &Value| -> Vec<String> {
        let of = |entry: &Value| entry["header_signature"].as_str().unwrap().to_owned();
        list["data"].as_array().unwrap().iter().map(of).collect()
    };
    let newest_first: Vec<String> =
        batches.iter().rev().map(|batch| batch.header_signature.clone()).collect();
    let first = get(&ledger, "/batches?limit=2");
    assert_eq!(ids(&first), newest_first[..2]);
    let next = first["paging"]["next"].as_str().unwrap();
    let path = next.strip_prefix(&format!("http://{}", ledger.host())).unwrap();
    let second = get(&ledger, path);
    assert_eq!(ids(&second), newest_first[2..]);
    assert!(second["paging"].get("next").is_none());

    let transactions = get(&ledger, "/transactions");
    assert_eq!(ids(&transactions)[0], batches[2].transactions[0].header_signature);
    let blocks = get(&ledger, "/blocks?limit=10");
    assert_eq!(blocks["data"][0]["header"]["batch_ids"], json!([newest_first[0]]));
    assert_eq!(blocks["data"][3]["header"]["block_num"], "0");
    let block = get(&ledger, &format!("/blocks/{}", ids(&blocks)[0]));
    assert_eq!(block["data"], blocks["data"][0]);
    assert_eq!(get(&ledger, "/peers")["data"], json!([]));
    assert!(get(&ledger, "/status")["data"]["endpoint"].is_string());
}

#[test]
fn sawtooth_shows_its_state() {
    let ledger = sawtooth(|b| b);
    ledger.submit_one(&set(7));
    ledger.advance(10);
    let expected = json!([{ "address": ADDRESS, "data": "Nw==" }]);
    assert_eq!(get(&ledger, "/state?address=1cf126")["data"], expected);
    assert_eq!(get(&ledger, &format!("/state/{ADDRESS}"))["data"], "Nw==");
    let error = |path: &str| request(&ledger, path).json()["error"]["code"].clone();
    assert_eq!(error(&format!("/state/{}", ADDRESS.replace('a', "b"))), 75);
    assert_eq!(error("/state/1cf126"), 62);
    assert_eq!(error("/batches?start=x"), 54);
    assert_eq!(error("/blocks/ab"), 70);
}

#[test]
fn scabbard_shows_its_state() {
    let ledger = scabbard(|b| b);
    ledger.submit_one(&set(7));
    ledger.advance(10);
    let expected = json!([{ "address": ADDRESS, "value": [55] }]);
    assert_eq!(get(&ledger, &ledger.path("state?prefix=1cf126")), expected);
    assert_eq!(get(&ledger, &ledger.path(&format!("state/{ADDRESS}"))), json!([55]));
    let missing = request(&ledger, &ledger.path("state/00"));
    assert!(missing.status_line.contains("404"), "{}", missing.status_line);
}
