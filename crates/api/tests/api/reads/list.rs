//! `GET /v1/batches`.

use grid_batch_core::batches::{Change, Event, LedgerStatus};
use grid_batch_core::ledger::Outcome;
use serde_json::Value;

use crate::test_server::{TestServer, batch, body, id, service};

/// The pages of this request, as numbers of batches, and how many pages there were.
fn pages(server: &TestServer, query: &str) -> (Vec<String>, usize) {
    let (mut ids, mut after, mut count) = (Vec::new(), String::new(), 0);
    loop {
        let response = server.get(&format!("/v1/batches?{query}{after}"));
        assert_eq!(response.status, 200, "{}", response.json());
        let page = response.json();
        ids.extend(page["data"].as_array().unwrap().iter().map(text_of_id));
        count += 1;
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return (ids, count),
        }
    }
}

fn text_of_id(batch: &Value) -> String {
    batch["id"].as_str().unwrap().to_owned()
}

fn ids(numbers: &[u64]) -> Vec<String> {
    numbers.iter().map(|number| id(&batch(*number)).to_string()).collect()
}

/// Five batches of two services: the first of `a::b` is committed, that of `c::d` failed.
fn server() -> TestServer {
    let server = TestServer::new();
    for (service, numbers) in [("a::b", [1, 2, 3].as_slice()), ("c::d", &[4, 5])] {
        let list = body(numbers.iter().map(|number| batch(*number)));
        assert_eq!(server.post(&format!("/batches?service_id={service}"), &list).status, 202);
    }
    let taken = server.take_batch_of(service("a::b"));
    let change = |event| Change::new(taken.service_id.clone(), taken.batch_id, event);
    let accepted = Event::Outcome { attempt: 1, outcome: Outcome::Accepted };
    let committed = Event::status(LedgerStatus::Committed);
    server.store.record(&[change(accepted)]).unwrap();
    server.store.record(&[change(committed)]).unwrap();
    let failed = server.take_batch_of(service("c::d"));
    let busy = Event::Outcome { attempt: 1, outcome: Outcome::Busy };
    let change = Change::new(failed.service_id.clone(), failed.batch_id, busy);
    let error = Some("503: too busy".to_owned());
    server.store.record(&[Change { error, ..change }]).unwrap();
    server
}

#[test]
fn batches_are_listed_in_pages_in_the_order_of_their_storage() {
    let server = server();
    assert_eq!(pages(&server, ""), (ids(&[5, 4, 3, 2, 1]), 1));
    assert_eq!(pages(&server, "order=oldest&limit=2"), (ids(&[1, 2, 3, 4, 5]), 3));
    assert_eq!(pages(&server, "limit=2"), (ids(&[5, 4, 3, 2, 1]), 3));
}

#[test]
fn filters_select_batches() {
    let server = server();
    for (query, numbers) in [
        ("service_id=a::b", &[3, 2, 1][..]),
        ("state=committed", &[1]),
        ("state=new,delayed", &[5, 4, 3, 2]),
        ("state=open", &[5, 4, 3, 2]),
        ("state=ended", &[1]),
        ("error=true", &[4]),
        ("error=false&state=open", &[5, 3, 2]),
        ("error_contains=busy", &[4]),
        ("error_contains=missing", &[]),
        ("held=true", &[]),
        ("newer_than=1h", &[5, 4, 3, 2, 1]),
        ("older_than=1h", &[]),
        ("older_than=2999-01-01T00:00:00Z&service_id=c::d", &[5, 4]),
    ] {
        assert_eq!(pages(&server, query).0, ids(numbers), "{query}");
    }
}

#[test]
fn listed_batch_has_its_state_times_and_error() {
    let server = server();
    let page = server.get("/v1/batches?state=delayed").json();
    let batch = &page["data"][0];
    for (name, expected) in [
        ("service_id", "c::d"),
        ("state", "delayed"),
        ("dlt_status", "DELAYED"),
        ("last_error", "503: too busy"),
    ] {
        assert_eq!(batch[name], expected, "{batch}");
    }
    assert_eq!((&batch["attempts"], &batch["label"]), (&1.into(), &Value::Null), "{batch}");
    for name in ["stored_at", "since", "submitted_at"] {
        assert!(batch[name].as_str().unwrap().ends_with('Z'), "{batch}");
    }
    assert!(batch["link"].as_str().unwrap().ends_with("?service_id=c::d"), "{batch}");
}

#[test]
fn wrong_parameters_are_refused() {
    let server = TestServer::new();
    for (query, code) in [
        ("state=fresh", 1023),
        ("limit=0", 1023),
        ("after=x", 1023),
        ("older_than=x", 1023),
        ("label=", 1061),
        ("service_id=", 1008),
        ("page=2", 1007),
        ("order=newest&order=oldest", 1007),
    ] {
        assert_eq!(server.get(&format!("/v1/batches?{query}")).error(), (400, code), "{query}");
    }
    let delete = server.client().request("DELETE", "/v1/batches", &[], b"");
    assert_eq!(delete.error(), (405, 1002));
}
