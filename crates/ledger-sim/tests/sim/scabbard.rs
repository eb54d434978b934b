use std::time::Duration;

use grid_batch_core::ItemId;
use grid_batch_ledger_sim::{ExecutionResult, Fault, LedgerSim, SentTwice, When};
use grid_batch_protocol::{CylinderToken, SigningKey};

use crate::{
    batches::{batch, corrupt, id, key, list, unknown},
    client::{Request, Response},
    fixtures::check,
    ledgers::{CIRCUIT, Ledger, OTHER_SERVICE, SERVICE, authorized, scabbard, scope, service_path},
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn submission_response_has_a_path_to_the_statuses() {
    let ledger = scabbard(|b| b);
    let batch = batch(1);
    let response = ledger.submit_one(&batch);
    let values = [("CIRCUIT", CIRCUIT), ("SERVICE", SERVICE), ("BATCH", &batch.header_signature)];
    check("scabbard/submitted_202.http", &response, &values);
}

#[test]
fn empty_body_is_accepted() {
    let ledger = scabbard(|b| b);
    let values = [("CIRCUIT", CIRCUIT), ("SERVICE", SERVICE)];
    check("scabbard/empty_202.http", &ledger.send(&ledger.post([])), &values);
    check("scabbard/empty_202.http", &ledger.send(&ledger.post([0x12, 0])), &values);
}

#[test]
fn invalid_submission_has_its_error() {
    let ledger = scabbard(|b| b);
    check("scabbard/undecodable_400.http", &ledger.send(&ledger.post("garbage!!")), &[]);
    for bad in corrupt() {
        check("scabbard/bad_signature_400.http", &ledger.submit(&[batch(5), bad]), &[]);
    }
    assert_eq!(ledger.status(&batch(5)), "UNKNOWN");
    let mut short = batch(1);
    short.header_signature.truncate(126);
    check("scabbard/bad_signature_400.http", &ledger.submit_one(&short), &[]);
    let mut not_hex = batch(1);
    not_hex.header_signature.replace_range(..2, "zz");
    check("scabbard/signature_not_hex_500.http", &ledger.submit_one(&not_hex), &[]);
    let nowhere = ledger.send(&authorized(Request::get("/nowhere")));
    check("scabbard/no_such_endpoint_404.http", &nowhere, &[]);
    let method = ledger.send(&authorized(Request::get(ledger.path("batches"))));
    check("scabbard/no_such_endpoint_404.http", &method, &[]);
}

#[test]
fn unknown_service_is_not_found() {
    let ledger = scabbard(|b| b);
    for end in ["batches", "batch_statuses"] {
        let method = if end == "batches" { "POST" } else { "GET" };
        let response = ledger.send(&authorized(Request::new(method, service_path("gsZZ", end))));
        let values = [("CIRCUIT", CIRCUIT), ("SERVICE", "gsZZ")];
        check("scabbard/no_such_service_404.http", &response, &values);
    }
}

#[test]
fn valid_cylinder_token_is_required() {
    let ledger = scabbard(|b| b);
    let token = CylinderToken::new(&key()).as_str().to_owned();
    let status_request = Request::get(ledger.path("batch_statuses?ids=a"));
    let forged = token.replacen('.', "x.", 1);
    check("scabbard/unauthorized_401.http", &ledger.send(&status_request), &[]);
    for header in [&token, &format!("Bearer {token}"), &format!("Bearer Cylinder:{forged}")] {
        let response = ledger.send(&status_request.clone().header("Authorization", header));
        check("scabbard/unauthorized_401.http", &response, &[]);
    }
    let response = ledger.send(&status_request.clone().header("Authorization", b"Bearer \xc3\xa9"));
    check("scabbard/bad_header_400.http", &response, &[]);
    assert_eq!(ledger.send(&authorized(status_request)).status(), 200);
}

#[test]
fn other_keys_than_the_allowed_ones_are_refused() {
    let other = SigningKey::from_seed(2).public_key();
    let ledger = scabbard(|b| b.allow_keys([other]));
    check("scabbard/unauthorized_401.http", &ledger.submit(&[batch(1)]), &[]);
    let ledger = scabbard(|b| b.allow_keys([other, key().public_key()]));
    assert_eq!(ledger.submit(&[batch(1)]).status(), 202);
}

#[test]
fn protocol_version_is_checked_if_named() {
    let ledger = scabbard(|b| b);
    let status_request = |version: &str| {
        let path = service_path(SERVICE, "batch_statuses?ids=a");
        ledger.send(&authorized(Request::get(path)).header("SplinterProtocolVersion", version))
    };
    assert_eq!(status_request("1").status(), 200);
    check("scabbard/newer_protocol_400.http", &status_request("2"), &[]);
    check("scabbard/bad_protocol_400.http", &status_request("x"), &[]);
    assert_eq!(status_request("0").status(), 400);
}

#[test]
fn checks_have_the_order_of_a_real_node() {
    let ledger = scabbard(|b| b.fault(Fault::Busy, When::Always));
    let nowhere = Request::post("/scabbard/a/b/nowhere").header("SplinterProtocolVersion", "2");
    assert_eq!(ledger.send(&nowhere).status(), 404);
    let unauthorized =
        Request::post(service_path("gsZZ", "batches")).header("SplinterProtocolVersion", "2");
    assert_eq!(ledger.send(&unauthorized).status(), 401);
    assert_eq!(ledger.send(&authorized(unauthorized)).status(), 400);
    assert_eq!(
        ledger.send(&authorized(Request::post(service_path("gsZZ", "batches")))).status(),
        404
    );
    assert_eq!(ledger.send(&ledger.post("garbage!!")).status(), 400);
    assert_eq!(ledger.submit(&corrupt()).status(), 429);
    ledger.heal();
    assert_eq!(ledger.submit(&corrupt()).status(), 400);
}

#[test]
fn batch_is_unknown_pending_valid_then_committed() {
    let ledger = scabbard(|b| b.pending_for(2 * SECOND).valid_for(3 * SECOND));
    let batch = batch(1);
    let status_request = || ledger.send(&ledger.status_request(&[id(&batch)]));
    let values = [
        ("BATCH", &*batch.header_signature),
        ("UNKNOWN", &batch.header_signature),
        ("TRANSACTION", &batch.transactions[0].header_signature),
        ("SECONDS", "1700000000"),
        ("NANOSECONDS", "250000000"),
    ];
    check("scabbard/unknown.http", &status_request(), &values);
    ledger.submit_one(&batch);
    check("scabbard/pending.http", &status_request(), &values);
    ledger.advance(2);
    check("scabbard/valid.http", &status_request(), &values);
    ledger.advance(2);
    check("scabbard/valid.http", &status_request(), &values);
    ledger.advance(1);
    check("scabbard/committed.http", &status_request(), &values);
}

#[test]
fn invalid_batch_has_a_reason() {
    let ledger = scabbard(|b| b.refuse(|_| Some("no such contract".to_owned())));
    let batch = batch(1);
    ledger.submit_one(&batch);
    let values = [
        ("BATCH", &*batch.header_signature),
        ("TRANSACTION", &batch.transactions[0].header_signature),
        ("MESSAGE", "no such contract"),
        ("SECONDS", "1700000000"),
        ("NANOSECONDS", "250000000"),
    ];
    check("scabbard/invalid.http", &ledger.send(&ledger.status_request(&[id(&batch)])), &values);
    assert!(ledger.applied().is_empty());
    assert_eq!(ledger.record()[0].result, ExecutionResult::Invalid);
}

#[test]
fn services_commit_batches_one_by_one_and_independently() {
    let ledger = scabbard(|b| b.pending_for(SECOND).valid_for(SECOND));
    ledger.submit(&[batch(1), batch(2)]);
    let path = service_path(OTHER_SERVICE, "batches");
    ledger.send(&authorized(Request::post(path)).body(list(&[batch(3)])));
    ledger.advance(2);
    assert_eq!([1, 2].map(|n| ledger.status(&batch(n))), ["COMMITTED", "PENDING"]);
    assert_eq!(ledger.applied(), [id(&batch(1)), id(&batch(3))]);
    ledger.advance(1);
    assert_eq!(ledger.status(&batch(2)), "VALID");
    ledger.advance(1);
    assert_eq!(ledger.status(&batch(2)), "COMMITTED");
}

#[test]
fn each_service_has_its_own_batches() {
    let ledger = scabbard(|b| b);
    ledger.submit(&[batch(1)]);
    let path = service_path(OTHER_SERVICE, "batch_statuses");
    let path = format!("{path}?ids={}", batch(1).header_signature);
    let response = ledger.send(&authorized(Request::get(path)));
    assert_eq!(response.json()[0]["status"]["statusType"], "Unknown");
}

#[test]
fn any_text_is_unknown_and_duplicates_are_removed() {
    let ledger = scabbard(|b| b);
    let status_request = |ids: &str| {
        let path = service_path(SERVICE, &format!("batch_statuses{ids}"));
        ledger.send(&authorized(Request::get(path)))
    };
    check("scabbard/no_ids_400.http", &status_request(""), &[]);
    assert_eq!(ids_of(&status_request("?ids=")), [""]);
    assert_eq!(ids_of(&status_request("?ids=zz,zz,zz")), ["zz"]);
    assert_eq!(
        ids_of(&status_request(&format!("?ids={}", unknown().to_string().to_uppercase()))).len(),
        1
    );
}

#[test]
fn statuses_are_complete_in_any_order() {
    let ledger = scabbard(|b| b);
    let ids: Vec<_> = (0..200).map(|n| ItemId::from_bytes([n; 64])).collect();
    let answered = ids_of(&ledger.send(&ledger.status_request(&ids)));
    let asked: Vec<_> = ids.iter().map(ToString::to_string).collect();
    assert_ne!(answered, asked);
    let mut sorted = answered;
    sorted.sort_unstable();
    assert_eq!(sorted, asked);
}

#[test]
fn get_accepts_400_ids() {
    let ledger = scabbard(|b| b);
    let ids: Vec<_> = (0..400).map(|n| id(&batch(n))).collect();
    assert_eq!(ids_of(&ledger.send(&ledger.status_request(&ids))).len(), 400);
}

#[test]
fn service_remembers_its_last_hundred_batches() {
    let ledger = scabbard(|b| b);
    for number in 0..101 {
        ledger.submit(&[batch(number)]);
        ledger.advance(1);
    }
    assert_eq!(ledger.status(&batch(0)), "UNKNOWN");
    assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    assert_eq!(ledger.applied().len(), 101);
}

#[test]
fn restart_loses_all_statuses_and_waiting_batches() {
    let ledger = scabbard(|b| b.pending_for(SECOND));
    ledger.submit(&[batch(1), batch(2), batch(3)]);
    ledger.advance(1);
    ledger.restart();
    for _ in 0..2 {
        assert_eq!([1, 2, 3].map(|n| ledger.status(&batch(n))), ["UNKNOWN"; 3]);
        ledger.advance(60);
    }
    assert_eq!(ledger.applied(), [id(&batch(1))]);
}

#[test]
fn committed_batch_sent_again_becomes_invalid() {
    let ledger = scabbard(|b| b.pending_for(SECOND));
    ledger.submit(&[batch(1)]);
    ledger.advance(1);
    ledger.restart();
    ledger.submit(&[batch(1)]);
    assert_eq!(ledger.status(&batch(1)), "PENDING");
    ledger.advance(1);
    assert_eq!(ledger.status(&batch(1)), "INVALID");
    assert_eq!(ledger.applied(), [id(&batch(1))]);
}

#[test]
fn stuck_batch_is_applied_twice_and_blocks_its_service() {
    let ledger = scabbard(|b| b.valid_for(SECOND).sent_twice(SentTwice::StuckValid));
    ledger.submit(&[batch(1)]);
    ledger.advance(1);
    assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    ledger.submit(&[batch(1), batch(2)]);
    ledger.advance(29);
    assert_eq!([1, 2].map(|n| ledger.status(&batch(n))), ["VALID", "PENDING"]);
    ledger.advance(2);
    assert_eq!([1, 2].map(|n| ledger.status(&batch(n))), ["VALID", "COMMITTED"]);
    assert_eq!(ledger.applied(), [1, 1, 2].map(|n| id(&batch(n))));
}

#[test]
fn dropped_batch_stays_valid_and_the_next_is_committed() {
    let ledger = scabbard(|b| b.valid_for(SECOND));
    ledger.inject(Fault::DroppedValid, When::Next(1));
    ledger.submit(&[batch(1), batch(2)]);
    ledger.advance(29);
    assert_eq!([1, 2].map(|n| ledger.status(&batch(n))), ["VALID", "PENDING"]);
    ledger.advance(2);
    assert_eq!([1, 2].map(|n| ledger.status(&batch(n))), ["VALID", "COMMITTED"]);
    let promised = [1, 2].map(|n| (SERVICE_ID.parse().unwrap(), id(&batch(n))));
    assert_eq!(ledger.audit(&promised).lost, [id(&batch(1))]);
    ledger.submit(&[batch(1)]);
    ledger.advance(1);
    assert_eq!(ledger.status(&batch(1)), "COMMITTED");
    assert_eq!(ledger.audit(&promised).out_of_order, [id(&batch(1))]);
}

#[test]
fn full_queue_is_closed_until_it_is_half_empty() {
    let ledger = scabbard(|b| b.pending_for(SECOND));
    let submit = |number| ledger.submit(&[batch(number)]).status();
    for number in 0..31 {
        assert_eq!(submit(number), 202, "{number}");
    }
    check("scabbard/busy_429.http", &ledger.submit(&[batch(31)]), &[]);
    ledger.advance(15);
    assert_eq!(submit(31), 429);
    ledger.advance(1);
    assert_eq!(submit(31), 202);
}

#[test]
fn open_queue_accepts_a_list_of_any_length() {
    let ledger = scabbard(|b| b.pending_for(SECOND));
    let batches: Vec<_> = (0..110).map(batch).collect();
    assert_eq!(ledger.submit(&batches).status(), 202);
    assert_eq!(ledger.submit(&[batch(999)]).status(), 429);
}

#[test]
fn service_without_back_pressure_accepts_everything() {
    let ledger = scabbard(|b| b.pending_for(SECOND).without_back_pressure());
    for number in 0..40 {
        assert_eq!(ledger.submit(&[batch(number)]).status(), 202);
    }
}

#[test]
fn waiting_client_gets_final_statuses_first() {
    let ledger = scabbard(|b| b.pending_for(5 * SECOND));
    ledger.submit(&[batch(1)]);
    let (response, took) = wait(&ledger, &[id(&batch(1))], "10");
    assert_eq!(response.json()[0]["status"]["statusType"], "Committed");
    assert!(took >= 5 * SECOND, "{took:?}");
    let (response, took) = wait(&ledger, &[unknown(), id(&batch(1))], "3");
    assert_eq!(response.json()[0]["status"]["statusType"], "Committed");
    assert_eq!(response.json()[1]["status"]["statusType"], "Unknown");
    assert!(took >= 3 * SECOND, "{took:?}");
}

#[test]
fn wait_is_parsed_like_a_real_node() {
    let ledger = scabbard(|b| b);
    for now in ["0", "false"] {
        assert_eq!(wait(&ledger, &[unknown()], now).0.status(), 200);
    }
    let (response, took) = wait(&ledger, &[unknown()], "true");
    assert_eq!(response.status(), 200);
    assert!(took >= 300 * SECOND, "{took:?}");
}

#[test]
fn waiting_clients_occupy_all_workers() {
    let ledger = scabbard(|b| b);
    let address = ledger.address();
    let path = format!("{}?ids={}&wait=20", ledger.path("batch_statuses"), unknown());
    let waiting = [(); 2].map(|()| {
        let request = authorized(Request::get(path.clone()));
        std::thread::spawn(move || request.send(address).unwrap().status())
    });
    crate::client::eventually("both workers are taken", || {
        let timeout = Duration::from_millis(20);
        ledger.status_request(&[unknown()]).timeout(timeout).send(address).is_err()
    });
    ledger.advance(20);
    assert_eq!(waiting.map(|client| client.join().unwrap()), [200; 2]);
    assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
}

#[test]
fn ledger_with_system_clock_commits_without_requests() {
    let builder = LedgerSim::scabbard([scope(SERVICE)]);
    let sim = builder.pending_for(Duration::from_millis(5)).start().unwrap();
    let request = authorized(Request::post(service_path(SERVICE, "batches")));
    request.body(list(&[batch(1)])).send(sim.address()).unwrap();
    crate::client::eventually("it is committed", || sim.record().len() == 1);
}

const SERVICE_ID: &str = "abcDE-F0123::gsAA";

fn wait(ledger: &Ledger, ids: &[ItemId], wait: &str) -> (Response, Duration) {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    let path = ledger.path("batch_statuses");
    let path = format!("{path}?ids={}&wait={wait}", ids.join(","));
    ledger.send_and_wait(authorized(Request::get(path)))
}

fn ids_of(response: &Response) -> Vec<String> {
    let json = response.json();
    let statuses = json.as_array().unwrap();
    statuses.iter().map(|status| status["id"].as_str().unwrap().to_owned()).collect()
}
