use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::ItemId;
use grid_batch_protocol::{Batch, Message, TransactionHeader};

use crate::{
    batches::{batch, batch_of, corrupt, depending_on, id, key, list, transaction_id, unknown},
    client::Request,
    fixtures::check,
    ledgers::sawtooth,
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn submission_response_has_a_link_to_the_statuses() {
    let ledger = sawtooth(|b| b);
    let [one, two] = [1, 2].map(batch);
    let response = ledger.submit_one(&one);
    let values = [("HOST", &*ledger.host()), ("BATCH", &one.header_signature)];
    check("sawtooth/submitted_202.http", &response, &values);
    let both = format!("{},{}", one.header_signature, two.header_signature);
    let response = ledger.submit(&[one.clone(), two]);
    check("sawtooth/submitted_202.http", &response, &[values[0], ("BATCH", &both)]);
}

#[test]
fn link_uses_the_headers_of_a_proxy() {
    let ledger = sawtooth(|b| b);
    let request = ledger.post(list(&[batch(1)]));
    let link = |request: Request| ledger.send(&request).json()["link"].as_str().unwrap().to_owned();
    let forwarded = request.clone().header("Forwarded", "proto=https; host=\"a.example\";path=/b");
    assert!(link(forwarded).starts_with("https://a.example/b/batch_statuses?id="));
    let forwarded =
        request.header("X-Forwarded-Host", "c.example").header("X-Forwarded-Path", "/d");
    assert!(link(forwarded).starts_with("http://c.example/d/batch_statuses?id="));
}

#[test]
fn empty_list_is_accepted_but_not_an_empty_body() {
    let ledger = sawtooth(|b| b);
    let response = ledger.send(&ledger.post([0x12, 0]));
    check("sawtooth/empty_202.http", &response, &[("HOST", &ledger.host())]);
    check("sawtooth/empty_34.http", &ledger.send(&ledger.post([])), &[]);
}

#[test]
fn invalid_submission_has_its_error() {
    let ledger = sawtooth(|b| b);
    let post = || Request::post("/batches").body("x");
    let with_type = |content_type: &str| ledger.send(&post().header("Content-Type", content_type));
    check("sawtooth/submission_type_42.http", &with_type("application/json"), &[]);
    let parameters = "application/octet-stream; charset=utf-8";
    check("sawtooth/submission_type_42.http", &with_type(parameters), &[]);
    check("sawtooth/undecodable_35.http", &with_type("application/octet-stream"), &[]);
    check("sawtooth/server_error_500.http", &ledger.send(&post()), &[]);
    let method = ledger.send(&Request::new("PUT", "/batches"));
    check("sawtooth/method_405.http", &method, &[("METHODS", "GET,HEAD,POST")]);
    check("sawtooth/not_found_404.http", &ledger.send(&Request::get("/nowhere")), &[]);
}

#[test]
fn list_with_one_invalid_batch_is_refused() {
    let ledger = sawtooth(|b| b);
    for bad in corrupt() {
        let response = ledger.submit(&[batch(5), bad]);
        check("sawtooth/bad_signature_30.http", &response, &[]);
    }
    assert_eq!(ledger.status(&batch(5)), "UNKNOWN");
}

#[test]
fn body_above_ten_mebibytes_is_too_long() {
    let ledger = sawtooth(|b| b);
    let response = ledger.send(&ledger.post(vec![0; 10 * 1024 * 1024 + 1]));
    let read = response.text().rsplit(' ').next().unwrap().to_owned();
    check("sawtooth/too_long_413.http", &response, &[("READ", &read)]);
    let response = ledger.send(&ledger.post(vec![0; 10 * 1024 * 1024]));
    check("sawtooth/undecodable_35.http", &response, &[]);
}

#[test]
fn batch_is_unknown_then_pending_then_committed() {
    let ledger = sawtooth(|b| b.pending_for(2 * SECOND).valid_for(3 * SECOND));
    let batch = batch(1);
    let status_request = || ledger.send(&ledger.status_request(&[id(&batch)]));
    let host = ledger.host();
    let values = [
        ("HOST", &*host),
        ("BATCH", &batch.header_signature),
        ("UNKNOWN", &batch.header_signature),
    ];
    check("sawtooth/unknown.http", &status_request(), &values);
    ledger.submit_one(&batch);
    check("sawtooth/pending.http", &status_request(), &values);
    ledger.advance(4);
    check("sawtooth/pending.http", &status_request(), &values);
    ledger.advance(1);
    check("sawtooth/committed.http", &status_request(), &values);
}

#[test]
fn batch_is_committed_at_once_by_default() {
    let ledger = sawtooth(|b| b);
    ledger.submit(&[batch(1)]);
    assert_eq!(ledger.status(&batch(1)), "COMMITTED");
}

#[test]
fn invalid_transaction_is_listed_three_times() {
    let ledger = sawtooth(|b| b.refuse(|_| Some("it is \"bad\"".to_owned())));
    let batch = batch(1);
    ledger.submit_one(&batch);
    let response = ledger.send(&ledger.status_request(&[id(&batch)]));
    let values = [
        ("HOST", &*ledger.host()),
        ("BATCH", &batch.header_signature),
        ("TRANSACTION", &batch.transactions[0].header_signature),
        ("MESSAGE", "it is \\\"bad\\\""),
    ];
    check("sawtooth/invalid.http", &response, &values);
}

#[test]
fn empty_message_is_omitted() {
    let ledger = sawtooth(|b| b.refuse(|_| Some(String::new())));
    ledger.submit(&[batch(1)]);
    let response = ledger.send(&ledger.status_request(&[id(&batch(1))])).json();
    assert_eq!(
        response["data"][0]["invalid_transactions"][0],
        serde_json::json!({ "id": transaction_id(&batch(1)).to_string() })
    );
}

#[test]
fn invalid_batch_is_kept_for_600_seconds_after_a_look() {
    let ledger = sawtooth(|b| b.refuse(|_| Some(String::new())));
    ledger.submit(&[batch(1)]);
    for other in [2, 3] {
        ledger.advance(599);
        ledger.submit(&[batch(other)]);
        assert_eq!(ledger.status(&batch(1)), "INVALID");
    }
    ledger.advance(600);
    ledger.submit(&[batch(4)]);
    assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
}

#[test]
fn batch_that_is_invalid_again_has_more_entries() {
    let ledger = sawtooth(|b| b.refuse(|_| Some(String::new())));
    for times in 1..3 {
        ledger.submit(&[batch(1)]);
        let response = ledger.send(&ledger.status_request(&[id(&batch(1))])).json();
        let entries = response["data"][0]["invalid_transactions"].as_array().unwrap().len();
        assert_eq!(entries, 3 * times);
    }
}

#[test]
fn batch_with_an_applied_transaction_stays_pending() {
    let ledger = sawtooth(|b| b.pending_for(SECOND));
    let both = batch_of(&[1, 2]);
    ledger.submit(&[batch(1), both.clone(), batch(2), batch(3)]);
    ledger.advance(10);
    let status = |batch: &Batch| ledger.status(batch);
    assert_eq!([1, 2, 3].map(|n| status(&batch(n))), ["COMMITTED"; 3]);
    assert_eq!(status(&both), "PENDING");
    assert_eq!(ledger.submit_one(&both).status(), 202);
    ledger.advance(10);
    assert_eq!(status(&both), "PENDING");
    assert_eq!(ledger.applied(), [1, 2, 3].map(|n| id(&batch(n))), "it is not executed");
    ledger.restart();
    assert_eq!(status(&both), "UNKNOWN");
}

#[test]
fn invalid_batch_sent_again_stays_invalid_until_committed() {
    let ledger = sawtooth(|b| b.pending_for(SECOND).refuse(|_| Some(String::new())));
    ledger.submit(&[batch(1)]);
    ledger.advance(1);
    ledger.refuse(|_| None);
    ledger.submit(&[batch(1)]);
    assert_eq!(ledger.status(&batch(1)), "INVALID");
    ledger.advance(1);
    assert_eq!(ledger.status(&batch(1)), "COMMITTED");
}

#[test]
fn repeated_batch_is_accepted_and_applied_once() {
    let ledger = sawtooth(|b| b.pending_for(SECOND));
    for _ in 0..3 {
        assert_eq!(ledger.submit(&[batch(1), batch(1)]).status(), 202);
        ledger.advance(1);
        assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    }
    assert_eq!(ledger.applied(), [id(&batch(1))]);
    assert_eq!(ledger.times_received(&id(&batch(1))), 6);
}

#[test]
fn restart_keeps_only_committed_batches() {
    let ledger = sawtooth(|b| {
        b.pending_for(SECOND)
            .refuse(|batch| (batch.transactions()[0].header().nonce == "2").then(String::new))
    });
    ledger.submit(&[batch(1), batch(2)]);
    ledger.advance(1);
    ledger.submit(&[batch(3)]);
    let statuses = || [1, 2, 3].map(|number| ledger.status(&batch(number)));
    assert_eq!(statuses(), ["COMMITTED", "INVALID", "PENDING"]);
    ledger.restart();
    assert_eq!(statuses(), ["COMMITTED", "UNKNOWN", "UNKNOWN"]);
    ledger.advance(10);
    assert_eq!(statuses(), ["COMMITTED", "UNKNOWN", "UNKNOWN"]);
}

#[test]
fn post_returns_statuses_in_requested_order() {
    let ledger = sawtooth(|b| b);
    let batch = batch(1);
    ledger.submit_one(&batch);
    let ids = serde_json::to_string(&[id(&batch), unknown()].map(|id| id.to_string())).unwrap();
    let response = ledger.send(&post_statuses(&ids));
    let unknown = unknown().to_string();
    let values = [("BATCH", &*batch.header_signature), ("UNKNOWN", &unknown)];
    check("sawtooth/statuses_by_post.http", &response, &values);
}

#[test]
fn post_accepts_1000_ids_and_get_not_64() {
    let ledger = sawtooth(|b| b);
    let ids = |count: u8| -> Vec<_> { (0..count).map(|n| ItemId::from_bytes([n; 64])).collect() };
    assert_eq!(ledger.send(&ledger.status_request(&ids(63))).status(), 200);
    let response = ledger.send(&ledger.status_request(&ids(64)));
    let read = (19 + 64 * 129 - 1).to_string();
    check("sawtooth/line_too_long_400.http", &response, &[("READ", &read)]);
    let thousand = serde_json::to_string(&vec![unknown().to_string(); 1_000]).unwrap();
    let response = ledger.send(&post_statuses(&thousand)).json();
    assert_eq!(response["data"].as_array().unwrap().len(), 1_000);
}

#[test]
fn invalid_status_request_has_its_error() {
    let ledger = sawtooth(|b| b);
    let get = |query: &str| ledger.send(&Request::get(format!("/batch_statuses{query}")));
    check("sawtooth/no_id_query_66.http", &get(""), &[]);
    check("sawtooth/bad_id_60.http", &get("?id=zz"), &[]);
    let upper = unknown().to_string().to_uppercase();
    assert_eq!(get(&format!("?id={upper}")).json()["error"]["code"], 60);
    for body in ["[]", "{}", "7", "[7]"] {
        check("sawtooth/no_ids_in_json_46.http", &ledger.send(&post_statuses(body)), &[]);
    }
    check("sawtooth/bad_id_60.http", &ledger.send(&post_statuses("[\"zz\"]")), &[]);
    check("sawtooth/server_error_500.http", &ledger.send(&post_statuses("{")), &[]);
    let untyped = Request::post("/batch_statuses").body("[]");
    check("sawtooth/server_error_500.http", &ledger.send(&untyped), &[]);
    let typed = untyped.header("Content-Type", "application/octet-stream");
    check("sawtooth/statuses_type_43.http", &ledger.send(&typed), &[]);
}

#[test]
fn waiting_client_is_answered_when_nothing_is_pending() {
    let ledger = sawtooth(|b| b.pending_for(5 * SECOND));
    let batch = batch(1);
    ledger.submit_one(&batch);
    let path = format!("/batch_statuses?id={}&wait=10", batch.header_signature);
    let (response, took) = ledger.send_and_wait(Request::get(path));
    let values = [("HOST", &*ledger.host()), ("BATCH", &batch.header_signature)];
    check("sawtooth/committed_after_wait.http", &response, &values);
    assert!(took >= 5 * SECOND, "{took:?}");
}

#[test]
fn too_short_wait_returns_pending() {
    let ledger = sawtooth(|b| b.pending_for(1_000 * SECOND));
    ledger.submit(&[batch(1)]);
    let status = |wait: &str| {
        let path = format!("/batch_statuses?id={}&wait={wait}", batch(1).header_signature);
        let (response, took) = ledger.send_and_wait(Request::get(path));
        (response.json()["data"][0]["status"].clone(), took)
    };
    let path = format!("/batch_statuses?id={}&wait=false", batch(1).header_signature);
    let response = ledger.send(&Request::get(path));
    assert_eq!(response.json()["data"][0]["status"], "PENDING");
    let (pending, took) = status("3");
    assert_eq!(pending, "PENDING");
    assert!(took >= 3 * SECOND, "{took:?}");
    let (pending, took) = status("0");
    assert_eq!(pending, "PENDING");
    assert!(took >= 300 * SECOND, "{took:?}");
}

#[test]
fn wait_longer_than_the_rest_timeout_times_out() {
    let ledger = sawtooth(|b| b.pending_for(1_000 * SECOND));
    ledger.submit(&[batch(1)]);
    let path = format!("/batch_statuses?id={}&wait=400", batch(1).header_signature);
    let (response, took) = ledger.send_and_wait(Request::get(path));
    check("sawtooth/timed_out_17.http", &response, &[]);
    assert!(took >= 300 * SECOND, "{took:?}");
}

#[test]
fn waiting_for_an_unknown_batch_returns_at_once() {
    let ledger = sawtooth(|b| b);
    let response = ledger.send(&Request::get(format!("/batch_statuses?id={}&wait", unknown())));
    assert_eq!(response.json()["data"][0]["status"], "UNKNOWN");
}

#[test]
fn dependent_batch_is_unknown_until_its_dependency_is_sent() {
    let ledger = sawtooth(|b| b.pending_for(SECOND));
    let [first, second] = [batch(1), depending_on(2, [transaction_id(&batch(1))])];
    assert_eq!(ledger.submit_one(&second).status(), 202);
    assert_eq!(ledger.status(&second), "UNKNOWN");
    ledger.submit_one(&first);
    assert_eq!(ledger.status(&second), "PENDING");
    ledger.advance(1);
    assert_eq!(ledger.status(&second), "COMMITTED");
    assert_eq!(ledger.applied(), [id(&first), id(&second)]);
}

#[test]
fn batch_with_an_invalid_dependency_is_invalid() {
    let ledger = sawtooth(|b| {
        b.pending_for(SECOND)
            .refuse(|batch| (batch.transactions()[0].header().nonce == "1").then(String::new))
    });
    let second = depending_on(2, [transaction_id(&batch(1))]);
    ledger.submit(&[batch(1), second.clone()]);
    ledger.advance(1);
    assert_eq!(ledger.status(&second), "INVALID");
}

#[test]
fn batch_without_its_dependency_is_dropped() {
    let ledger = sawtooth(|b| b);
    let second = depending_on(2, [transaction_id(&batch(1))]);
    ledger.submit_one(&second);
    ledger.advance(20 * 60);
    ledger.submit(&[batch(1)]);
    assert_eq!(ledger.status(&second), "UNKNOWN");
}

#[test]
fn full_queue_accepts_no_list_and_almost_full_any() {
    let ledger = sawtooth(|b| b.pending_for(SECOND));
    let batches: Vec<_> = (0..310).map(batch).collect();
    assert_eq!(ledger.submit(&batches[..299]).status(), 202);
    assert_eq!(ledger.submit(&batches[299..]).status(), 202);
    let response = ledger.submit(&[batch(999)]);
    check("sawtooth/queue_full_31.http", &response, &[]);
    // The queue is checked before the signatures.
    check("sawtooth/queue_full_31.http", &ledger.submit(&corrupt()), &[]);
    ledger.advance(1);
    assert_eq!(ledger.submit(&[batch(999)]).status(), 202);
}

#[test]
fn small_blocks_lower_the_queue_limit() {
    let ledger = sawtooth(|b| b.pending_for(SECOND).block_size(3));
    let batches: Vec<_> = (0..102).map(batch).collect();
    ledger.submit(&batches);
    ledger.advance(1);
    assert_eq!(ledger.status(&batch(0)), "COMMITTED");
    let more: Vec<_> = (200..230).map(batch).collect();
    assert_eq!(ledger.submit(&more).status(), 202);
    assert_eq!(ledger.submit(&[batch(999)]).status(), 429);
}

#[test]
fn batch_in_a_block_is_returned() {
    let ledger = sawtooth(|b| b.pending_for(SECOND));
    let batch = batch(1);
    ledger.submit_one(&batch);
    let get = || ledger.send(&Request::get(format!("/batches/{}", batch.header_signature)));
    check("sawtooth/batch_not_found_71.http", &get(), &[]);
    ledger.advance(1);
    let transaction = &batch.transactions[0];
    let header = TransactionHeader::decode(&transaction.header[..]).unwrap();
    let values = [
        ("HOST", &*ledger.host()),
        ("BATCH", &batch.header_signature),
        ("TRANSACTION", &transaction.header_signature),
        ("SIGNER", &key().public_key().to_string()),
        ("SHA512", &header.payload_sha512),
        ("PAYLOAD", &BASE64_STANDARD.encode(&transaction.payload)),
    ];
    check("sawtooth/batch.http", &get(), &values);
    check("sawtooth/bad_id_60.http", &ledger.send(&Request::get("/batches/zz")), &[]);
}

#[test]
fn transaction_in_a_block_is_returned() {
    let ledger = sawtooth(|b| b.pending_for(SECOND));
    let batch = batch(1);
    let transaction = &batch.transactions[0];
    ledger.submit_one(&batch);
    let get = |id: &str| ledger.send(&Request::get(format!("/transactions/{id}")));
    let id = &transaction.header_signature;
    check("sawtooth/transaction_not_found_72.http", &get(id), &[]);
    ledger.advance(1);
    let header = TransactionHeader::decode(&transaction.header[..]).unwrap();
    let values = [
        ("HOST", &*ledger.host()),
        ("TRANSACTION", id),
        ("SIGNER", &key().public_key().to_string()),
        ("SHA512", &header.payload_sha512),
        ("PAYLOAD", &BASE64_STANDARD.encode(&transaction.payload)),
    ];
    check("sawtooth/transaction.http", &get(id), &values);
    check("sawtooth/bad_id_60.http", &get("zz"), &[]);
}

fn post_statuses(body: &str) -> Request {
    Request::post("/batch_statuses").header("Content-Type", "application/json").body(body)
}

#[test]
fn first_block_is_kept_with_the_record() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let path = "/blocks?limit=1&start=0x0000000000000000&reverse";
    let first_block = |ledger: &crate::ledgers::Ledger| {
        let response = ledger.send(&Request::get(path));
        assert_eq!(response.status(), 200, "{}", response.text());
        let list = response.json();
        assert_eq!(list["data"][0]["header"]["block_num"], "0");
        list["data"][0]["header_signature"].as_str().unwrap().parse::<ItemId>().unwrap()
    };
    let ledger = sawtooth(|b| b.seed(1).record_to(&record));
    let kept = first_block(&ledger);
    ledger.restart();
    assert_eq!(first_block(&ledger), kept);
    drop(ledger);
    assert_eq!(first_block(&sawtooth(|b| b.seed(2).record_to(&record))), kept);
    assert_ne!(first_block(&sawtooth(|b| b.seed(2))), kept);
    assert_eq!(first_block(&sawtooth(|b| b.seed(2).genesis(kept))), kept);
    let other = sawtooth(|b| b).send(&Request::get("/blocks?start=7"));
    assert_eq!((other.status(), &other.json()["error"]["code"]), (400, &54.into()));
}
