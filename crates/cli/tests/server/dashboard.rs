//! The dashboard in a real browser. The scripts of `tests/dashboard` use it.

use std::{fs, path::Path, thread};

use diesel::{RunQueryDsl, sql_query};
use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list, signed_batch, signed_batches},
    browser,
    wait::wait_until,
    webhook_receiver::WebhookReceiver,
};
use serde_json::{Value, json};

use crate::{
    harness::{BatchHarness, BatchServer, count_in_state, unused_address},
    instances::group::InstanceGroup,
};

/// Runs a script of `tests/dashboard` to its end.
fn run_script(name: &str, directory: &Path, arguments: Value) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = sources.join("tests/dashboard").join(name);
    browser::run_script(&script, directory, &sources.join("../../docs/images"), arguments);
}

fn url(server: &BatchServer) -> String {
    format!("http://{}", server.address)
}

fn service_path(service: &str, verb: &str) -> String {
    format!("/v1/services/{}{verb}", service.replace(':', "%3A"))
}

fn post(server: &BatchServer, path: &str, body: Value) {
    let response = server.post_json(path, &body);
    assert!([200, 201].contains(&response.status), "{response:?}");
}

/// A server with a committed batch, a paused service, and a batch of it that is held.
struct Shown {
    harness: BatchHarness,
    server: BatchServer,
    batches: Vec<SignedBatch>,
}

impl Shown {
    fn new() -> Self {
        let harness = BatchHarness::sawtooth();
        let server = harness.serve();
        let batches = signed_batches(&harness.services, 2);
        server.submit(&batches[..1]);
        harness.wait_until_all_committed(&batches[..1]);
        post(&server, "/v1/services/global/pause", json!({"reason": "maintenance"}));
        server.submit(&batches[1..]);
        let hold = format!("/v1/batches/{}/hold", batches[1].batch_id);
        post(&server, &hold, json!({"reason": "look first"}));
        wait_until("the depth is measured twice", || {
            let history = server.get("/v1/history");
            let points = history["data"].as_array().unwrap();
            points.len() > 1 && points.last().unwrap()["open"] == 1
        });
        wait_until("the hold is counted", || server.get("/v1/counts")["counts"]["held"] == 1);
        Self { harness, server, batches }
    }

    fn run_script(&self, name: &str) {
        let arguments = json!({
            "url": url(&self.server),
            "service": "global",
            "committed": self.batches[0].batch_id.to_string(),
            "held": self.batches[1].batch_id.to_string(),
        });
        run_script(name, self.harness.path(), arguments);
    }
}

#[test]
fn every_view_shows_what_the_server_has() {
    Shown::new().run_script("views.mjs");
}

#[test]
fn held_batch_is_decided_in_the_browser() {
    let shown = Shown::new();
    shown.run_script("decision.mjs");
    let log = shown.server.get("/v1/operator-actions?verb=cancel");
    assert_eq!(log["data"][0]["reason"], "the application was stopped", "{log}");
    assert_eq!(log["data"][0]["batch_id"], shown.batches[1].batch_id.to_string());
}

#[test]
fn page_of_one_instance_shows_events_of_another() {
    let group = InstanceGroup::new(2);
    let [first, second] = ["first", "second"].map(|name| group.start(name));
    let batches = group.batches(0);
    let list = group.harness.path().join("list");
    fs::write(&list, encode_batch_list(&batches[..1])).unwrap();
    let arguments = json!({
        "url": url(&first),
        "other": url(&second),
        "service": batches[0].service_id.to_string(),
        "batch": batches[0].batch_id.to_string(),
        "list": list.display().to_string(),
    });
    run_script("live.mjs", group.harness.path(), arguments);
    first.stop();
    second.stop();
}

#[test]
fn token_is_offered_what_it_allows() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve();
    server.submit(&signed_batches(&harness.services, 1));
    server.stop();
    let server = harness.serve_with(&[("--access-mode", "tokens")]);
    let [first, second] = &harness.services[..] else { unreachable!() };
    let token = |name: &str, scopes: &str, services: &str| {
        let created = harness.run_command(&[
            "token",
            "create",
            "--name",
            name,
            "--scope",
            scopes,
            "--service",
            services,
            "--reason",
            "a test",
        ]);
        let token = created.stdout.trim().to_owned();
        let path = format!("/v1/batches?service_id={first}");
        wait_until("the token is known", || server.status_with_token(&path, &token) == 200);
        token
    };
    let arguments = json!({
        "url": url(&server),
        "reader": token("reader", "read", "*"),
        "operator": token("operator", "read,operate,submit", "*"),
        "of_one": token("of one", "read,operate", first),
        "allowed": first,
        "forbidden": second,
    });
    run_script("sign_in.mjs", harness.path(), arguments);
    server.stop();
}

/// The last values stay, and say how old they are. They are read again when a server answers.
#[test]
fn values_stay_while_the_server_is_down() {
    let harness = BatchHarness::sawtooth();
    let listen = unused_address().to_string();
    let flags = [("--listen", listen.as_str())];
    let server = harness.serve_with(&flags);
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches[..1]);
    harness.wait_until_all_committed(&batches[..1]);
    let stopped = harness.path().join("stopped");
    let restarted = harness.path().join("restarted");
    let arguments = json!({
        "url": url(&server),
        "batch": batches[0].batch_id.to_string(),
        "stopped": stopped.display().to_string(),
        "restarted": restarted.display().to_string(),
    });
    thread::scope(|scope| {
        let script = scope.spawn(|| run_script("server_down.mjs", harness.path(), arguments));
        wait_until("the page is shown", || stopped.exists() || script.is_finished());
        server.stop_with("KILL");
        wait_until("the page says so", || restarted.exists() || script.is_finished());
        let server = harness.serve_with(&flags);
        script.join().unwrap();
        server.stop();
    });
}

#[test]
fn many_batches_are_held_after_a_preview() {
    let harness = BatchHarness::scabbard(3);
    let server = harness.serve();
    let services = &harness.services;
    post(&server, "/v1/pause", json!({"reason": "a test"}));
    let batches = signed_batches(services, 60);
    server.submit(&batches);
    wait_until("they are counted", || server.get("/v1/counts")["counts"]["open"] == 180);
    let arguments = json!({ "url": url(&server), "service": services[0], "other": services[1] });
    run_script("many.mjs", harness.path(), arguments);
    let held = server.get("/v1/batches?held=true&limit=1000");
    let held = held["data"].as_array().unwrap();
    assert_eq!(held.len(), 60);
    assert!(held.iter().all(|batch| batch["service_id"] == services[0].as_str()));
    server.stop();
}

/// Another webhook, which is paused, has an event that waits.
#[test]
fn failed_message_of_a_webhook_is_delivered_from_the_browser() {
    let harness = BatchHarness::sawtooth();
    let receiver = WebhookReceiver::start(&["500 No"]);
    let server = harness.serve_with(&[("--requests-options", "webhooks=private:127.0.0.1")]);
    let url_of = |kind: &str| format!("{}/{kind}", receiver.url());
    let create = |kind: &str| {
        let body = json!({"url": url_of(kind), "kinds": [kind], "reason": "a test"});
        let created = server.post_json("/v1/webhooks", &body).json();
        format!("/v1/webhooks/{}", created["id"].as_str().unwrap())
    };
    let (failing, paused) = (create("held"), create("accepted"));
    post(&server, &format!("{paused}/pause"), json!({"reason": "a test"}));
    server.submit(&signed_batches(&harness.services, 1));
    let ping = server.post_json(&format!("{failing}/ping"), &json!({"reason": "a test"})).json();
    let message = ping["message_id"].as_str().unwrap();
    wait_until("it is given up", || {
        server.get(&format!("{failing}/failed"))["data"][0]["again"] == false
    });
    let arguments = json!({ "url": url(&server), "receiver": url_of("held"), "message": message });
    run_script("webhooks.mjs", harness.path(), arguments);
    assert_eq!([receiver.next().id, receiver.next().id], [message, message]);
    assert!(receiver.is_unused());
    server.stop();
}

/// A held batch behind others does not stop its service, and is one held batch.
#[test]
fn service_that_moves_is_not_shown_as_held() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let service = &harness.services[0];
    harness.ledger.inject(Fault::Busy, When::Always);
    let batches = signed_batches(&harness.services, 4);
    server.submit(&batches);
    let hold = |batch: &SignedBatch| {
        let path = format!("/v1/batches/{}/hold", batch.batch_id);
        post(&server, &path, json!({"reason": "look first"}));
    };
    batches[2..].iter().for_each(hold);
    wait_until("both holds are counted", || server.get("/v1/counts")["counts"]["held"] == 2);
    let moves = server.get(&service_path(service, ""));
    assert_eq!((&moves["held"], &moves["stopped_by_holds"]), (&json!(2), &json!(false)));
    let arguments = json!({ "url": url(&server), "held": "2", "state": "failing" });
    run_script("held.mjs", harness.path(), arguments);
    hold(&batches[0]);
    wait_until("it stops the service", || {
        server.get(&service_path(service, ""))["stopped_by_holds"] == true
    });
    wait_until("three holds are counted", || server.get("/v1/counts")["counts"]["held"] == 3);
    let arguments = json!({ "url": url(&server), "held": "3", "state": "held" });
    run_script("held.mjs", harness.path(), arguments);
    server.stop();
}

/// The charts show what all instances did, also after a restart.
#[test]
fn history_is_of_all_instances_and_survives_a_restart() {
    let group = InstanceGroup::new(6);
    let batches = [group.batches(0), group.batches(1)].concat();
    let committed = |server: &BatchServer| {
        let history = server.get("/v1/history?range=24h");
        let points = history["data"].as_array().unwrap();
        points.iter().map(|point| point["committed"].as_u64().unwrap()).sum::<u64>()
    };
    let commit = |server: &BatchServer, ended: usize, sum: u64| {
        server.submit(&batches[ended - 6..ended]);
        group.harness.wait_until_all_committed(&batches[..ended]);
        wait_until("they are recorded", || committed(server) == sum);
    };
    let first = group.start("first");
    commit(&first, 6, 6);
    first.stop();
    let second = group.start("second");
    commit(&second, 12, 12);
    let other = group.start("other");
    assert_eq!(committed(&other), 12);
    second.stop();
    other.stop();
}

/// Twenty services with thousands of batches, some of which need attention: as wide as a screen, and on a phone.
#[test]
fn views_of_twenty_services_fit_each_window() {
    let group = InstanceGroup::with_ledger(20, |ledger| {
        ledger.fault(Fault::Invalid, When::Sometimes(0.02))
    });
    let server = group.start("first");
    let services = &group.harness.services;
    let ended = signed_batches(services, 150);
    server.submit(&ended);
    let store = group.harness.store();
    wait_until("all have ended", || {
        let count = |state| count_in_state(&store, state);
        count(BatchState::Committed) + count(BatchState::Invalid) == ended.len()
    });
    for (service, reason) in services.iter().zip(["maintenance of the node", "new contract"]) {
        post(&server, &service_path(service, "/pause"), json!({ "reason": reason }));
    }
    group.harness.ledger.inject(Fault::Busy, When::Always);
    let open: Vec<SignedBatch> = services
        .iter()
        .flat_map(|service| (150..170).map(move |n| signed_batch(service, n)))
        .collect();
    server.submit(&open);
    for batch in
        open.iter().filter(|batch| batch.service_id.as_str() > services[14].as_str()).step_by(7)
    {
        let hold = format!("/v1/batches/{}/hold", batch.batch_id);
        post(&server, &hold, json!({"reason": "the application asks for it"}));
    }
    post(
        &server,
        "/v1/webhooks",
        json!({"url": "https://receiver.example/batches", "kinds": ["held"], "reason": "a test"}),
    );
    // A day of samples, which no test can wait for.
    sql_query(
        "insert into samples (started_at, attempts, committed, invalid, open, oldest)
         select at, 40 + wave, 38 + wave, wave / 20, 90 + 4 * wave, 1000000 * (3 + wave / 8)
         from (select (extract(epoch from now())::bigint / 10 - n) * 10000000 as at,
                   (30 * (1 + sin(n / 300.0)) + 14 * random())::bigint as wave
               from generate_series(6, 8600) n) as s on conflict do nothing",
    )
    .execute(&mut group.connect())
    .unwrap();
    wait_until("all are counted", || server.get("/v1/counts")["counts"]["open"] == 400);
    let arguments = json!({
        "url": url(&server),
        "service": services[2],
        "invalid": server.get("/v1/batches?state=invalid&limit=1")["data"][0]["id"],
        "committed": ended[0].batch_id.to_string(),
    });
    for (scheme, width) in
        [("light", 1200), ("dark", 1200), ("light", 360), ("dark", 360), ("light", 800)]
    {
        let mut arguments = arguments.clone();
        (arguments["scheme"], arguments["width"]) = (scheme.into(), width.into());
        run_script("images.mjs", group.harness.path(), arguments);
    }
    server.stop();
}
