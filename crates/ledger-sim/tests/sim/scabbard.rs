use std::time::Duration;

use grid_batch_core::HeaderId;
use grid_batch_ledger_sim::{Fault, LedgerSim, SentTwice, Verdict, When};
use grid_batch_protocol::{CylinderToken, SigningKey};

use crate::{
    batches::{batch, corrupt, id, key, list, unknown},
    client::{Answer, Request},
    fixtures::check,
    ledgers::{CIRCUIT, Ledger, OTHER_SERVICE, SERVICE, authorized, scabbard, scope, service_path},
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_submission_is_answered_with_a_path_to_its_statuses() {
    let ledger = scabbard(|b| b);
    let batch = batch(1);
    let answer = ledger.submit_one(&batch);
    let values = [("CIRCUIT", CIRCUIT), ("SERVICE", SERVICE), ("BATCH", &batch.header_signature)];
    check("scabbard/submitted_202.http", &answer, &values);
}

#[test]
fn an_empty_body_is_accepted() {
    let ledger = scabbard(|b| b);
    let values = [("CIRCUIT", CIRCUIT), ("SERVICE", SERVICE)];
    check("scabbard/empty_202.http", &ledger.send(&ledger.post([])), &values);
    check("scabbard/empty_202.http", &ledger.send(&ledger.post([0x12, 0])), &values);
}

#[test]
fn every_wrong_submission_has_its_error() {
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
fn a_service_that_is_not_there_is_not_found() {
    let ledger = scabbard(|b| b);
    for end in ["batches", "batch_statuses"] {
        let method = if end == "batches" { "POST" } else { "GET" };
        let answer = ledger.send(&authorized(Request::new(method, service_path("gsZZ", end))));
        let values = [("CIRCUIT", CIRCUIT), ("SERVICE", "gsZZ")];
        check("scabbard/no_such_service_404.http", &answer, &values);
    }
}

#[test]
fn only_a_cylinder_token_that_counts_is_let_in() {
    let ledger = scabbard(|b| b);
    let token = CylinderToken::new(&key()).as_str().to_owned();
    let ask = Request::get(ledger.path("batch_statuses?ids=a"));
    let forged = token.replacen('.', "x.", 1);
    check("scabbard/unauthorized_401.http", &ledger.send(&ask), &[]);
    for header in [&token, &format!("Bearer {token}"), &format!("Bearer Cylinder:{forged}")] {
        let answer = ledger.send(&ask.clone().header("Authorization", header));
        check("scabbard/unauthorized_401.http", &answer, &[]);
    }
    let answer = ledger.send(&ask.clone().header("Authorization", b"Bearer \xc3\xa9"));
    check("scabbard/bad_header_400.http", &answer, &[]);
    assert_eq!(ledger.send(&authorized(ask)).status(), 200);
}

#[test]
fn where_keys_are_named_no_other_key_is_let_in() {
    let other = SigningKey::from_seed(2).public_key();
    let ledger = scabbard(|b| b.allow_keys([other]));
    check("scabbard/unauthorized_401.http", &ledger.submit(&[batch(1)]), &[]);
    let ledger = scabbard(|b| b.allow_keys([other, key().public_key()]));
    assert_eq!(ledger.submit(&[batch(1)]).status(), 202);
}

#[test]
fn a_protocol_version_is_checked_where_it_is_named() {
    let ledger = scabbard(|b| b);
    let ask = |version: &str| {
        let path = service_path(SERVICE, "batch_statuses?ids=a");
        ledger.send(&authorized(Request::get(path)).header("SplinterProtocolVersion", version))
    };
    assert_eq!(ask("1").status(), 200);
    check("scabbard/newer_protocol_400.http", &ask("2"), &[]);
    check("scabbard/bad_protocol_400.http", &ask("x"), &[]);
    assert_eq!(ask("0").status(), 400);
}

#[test]
fn checks_come_in_the_order_of_the_genuine_ones() {
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
fn a_batch_is_unknown_then_pending_then_valid_then_committed() {
    let ledger = scabbard(|b| b.pending_for(2 * SECOND).valid_for(3 * SECOND));
    let batch = batch(1);
    let ask = || ledger.send(&ledger.ask(&[id(&batch)]));
    let values = [
        ("BATCH", &*batch.header_signature),
        ("UNKNOWN", &batch.header_signature),
        ("TRANSACTION", &batch.transactions[0].header_signature),
        ("SECONDS", "1700000000"),
        ("NANOSECONDS", "250000000"),
    ];
    check("scabbard/unknown.http", &ask(), &values);
    ledger.submit_one(&batch);
    check("scabbard/pending.http", &ask(), &values);
    ledger.advance(2);
    check("scabbard/valid.http", &ask(), &values);
    ledger.advance(2);
    check("scabbard/valid.http", &ask(), &values);
    ledger.advance(1);
    check("scabbard/committed.http", &ask(), &values);
}

#[test]
fn an_invalid_batch_says_why() {
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
    check("scabbard/invalid.http", &ledger.send(&ledger.ask(&[id(&batch)])), &values);
    assert!(ledger.applied().is_empty());
    assert_eq!(ledger.record()[0].verdict, Verdict::Invalid);
}

#[test]
fn a_service_commits_one_batch_after_the_other_and_services_do_not_wait_for_each_other() {
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
fn each_service_knows_its_own_batches() {
    let ledger = scabbard(|b| b);
    ledger.submit(&[batch(1)]);
    let path = service_path(OTHER_SERVICE, "batch_statuses");
    let path = format!("{path}?ids={}", batch(1).header_signature);
    let answer = ledger.send(&authorized(Request::get(path)));
    assert_eq!(answer.json()[0]["status"]["statusType"], "Unknown");
}

#[test]
fn any_text_is_unknown_and_duplicates_collapse() {
    let ledger = scabbard(|b| b);
    let ask = |ids: &str| {
        let path = service_path(SERVICE, &format!("batch_statuses{ids}"));
        ledger.send(&authorized(Request::get(path)))
    };
    check("scabbard/no_ids_400.http", &ask(""), &[]);
    assert_eq!(ids_of(&ask("?ids=")), [""]);
    assert_eq!(ids_of(&ask("?ids=zz,zz,zz")), ["zz"]);
    assert_eq!(ids_of(&ask(&format!("?ids={}", unknown().to_string().to_uppercase()))).len(), 1);
}

#[test]
fn statuses_come_in_any_order_but_all_of_them() {
    let ledger = scabbard(|b| b);
    let ids: Vec<_> = (0..200).map(|n| HeaderId::from_bytes([n; 64])).collect();
    let answered = ids_of(&ledger.send(&ledger.ask(&ids)));
    let asked: Vec<_> = ids.iter().map(ToString::to_string).collect();
    assert_ne!(answered, asked);
    let mut sorted = answered;
    sorted.sort_unstable();
    assert_eq!(sorted, asked);
}

#[test]
fn four_hundred_ids_are_taken_by_get() {
    let ledger = scabbard(|b| b);
    let ids: Vec<_> = (0..400).map(|n| id(&batch(n))).collect();
    assert_eq!(ids_of(&ledger.send(&ledger.ask(&ids))).len(), 400);
}

#[test]
fn a_service_remembers_its_last_hundred_batches() {
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
fn a_restart_forgets_every_status_and_every_batch_that_waits() {
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
fn a_committed_batch_that_is_sent_again_becomes_invalid() {
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
fn a_committed_batch_that_is_executed_again_is_applied_twice_and_holds_its_service_up() {
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
fn a_dropped_batch_stays_valid_and_the_next_overtakes_it() {
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
fn a_full_queue_is_closed_until_half_of_it_is_gone() {
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
fn a_list_of_any_length_is_taken_by_an_open_queue() {
    let ledger = scabbard(|b| b.pending_for(SECOND));
    let batches: Vec<_> = (0..110).map(batch).collect();
    assert_eq!(ledger.submit(&batches).status(), 202);
    assert_eq!(ledger.submit(&[batch(999)]).status(), 429);
}

#[test]
fn a_service_without_back_pressure_takes_everything() {
    let ledger = scabbard(|b| b.pending_for(SECOND).without_back_pressure());
    for number in 0..40 {
        assert_eq!(ledger.submit(&[batch(number)]).status(), 202);
    }
}

#[test]
fn a_client_that_waits_is_answered_when_all_is_final_and_that_comes_first() {
    let ledger = scabbard(|b| b.pending_for(5 * SECOND));
    ledger.submit(&[batch(1)]);
    let (answer, took) = wait(&ledger, &[id(&batch(1))], "10");
    assert_eq!(answer.json()[0]["status"]["statusType"], "Committed");
    assert!(took >= 5 * SECOND, "{took:?}");
    let (answer, took) = wait(&ledger, &[unknown(), id(&batch(1))], "3");
    assert_eq!(answer.json()[0]["status"]["statusType"], "Committed");
    assert_eq!(answer.json()[1]["status"]["statusType"], "Unknown");
    assert!(took >= 3 * SECOND, "{took:?}");
}

#[test]
fn a_wait_of_false_or_zero_is_none_and_one_that_is_no_number_is_300_seconds() {
    let ledger = scabbard(|b| b);
    for now in ["0", "false"] {
        assert_eq!(wait(&ledger, &[unknown()], now).0.status(), 200);
    }
    let (answer, took) = wait(&ledger, &[unknown()], "true");
    assert_eq!(answer.status(), 200);
    assert!(took >= 300 * SECOND, "{took:?}");
}

#[test]
fn clients_that_wait_keep_others_waiting() {
    let ledger = scabbard(|b| b);
    let address = ledger.address();
    let path = format!("{}?ids={}&wait=20", ledger.path("batch_statuses"), unknown());
    let waiting = [(); 2].map(|()| {
        let request = authorized(Request::get(path.clone()));
        std::thread::spawn(move || request.send(address).unwrap().status())
    });
    crate::client::eventually("both workers are taken", || {
        let patience = Duration::from_millis(20);
        ledger.ask(&[unknown()]).patience(patience).send(address).is_err()
    });
    ledger.advance(20);
    assert_eq!(waiting.map(|client| client.join().unwrap()), [200; 2]);
    assert_eq!(ledger.status(&batch(1)), "UNKNOWN");
}

#[test]
fn a_ledger_on_the_machines_clock_commits_though_nobody_asks() {
    let builder = LedgerSim::scabbard([scope(SERVICE)]);
    let sim = builder.pending_for(Duration::from_millis(5)).start().unwrap();
    let request = authorized(Request::post(service_path(SERVICE, "batches")));
    request.body(list(&[batch(1)])).send(sim.address()).unwrap();
    crate::client::eventually("it is committed", || sim.record().len() == 1);
}

const SERVICE_ID: &str = "abcDE-F0123::gsAA";

fn wait(ledger: &Ledger, ids: &[HeaderId], wait: &str) -> (Answer, Duration) {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    let path = ledger.path("batch_statuses");
    let path = format!("{path}?ids={}&wait={wait}", ids.join(","));
    ledger.send_and_wait(authorized(Request::get(path)))
}

fn ids_of(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    let statuses = json.as_array().unwrap();
    statuses.iter().map(|status| status["id"].as_str().unwrap().to_owned()).collect()
}
