use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use grid_batch_api::{ApiBuildError, ApiBuilder, ApiOptions};
use serde_json::json;

use crate::fixture::Served;

#[test]
fn health_is_what_the_composer_says() {
    let sick = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&sick);
    let served = Served::with(|builder| {
        builder.with_health(move || {
            let reason = "no ledger answers".to_owned();
            Vec::from_iter(asked.load(Ordering::Relaxed).then_some(reason))
        })
    });
    let answer = served.get("/health");
    assert_eq!((answer.status, answer.json()), (200, json!({ "status": "ok" })));
    sick.store(true, Ordering::Relaxed);
    let answer = served.get("/health");
    let expected = json!({ "status": "unhealthy", "reasons": ["no ledger answers"] });
    assert_eq!((answer.status, answer.json()), (503, expected));
}

#[test]
fn other_addresses_and_methods_are_refused_in_the_same_shape() {
    let served = Served::new();
    for path in ["/", "/batches/", "/batches/x", "/Batches", "/%zz"] {
        assert_eq!(served.get(path).error(), (404, 1001), "{path}");
        assert_eq!(served.post(path, b"body").error(), (404, 1001), "{path}");
    }
    for (method, path, allowed) in [
        ("GET", "/batches", "POST"),
        ("PUT", "/batch_statuses", "GET,HEAD,POST"),
        ("DELETE", "/health", "GET,HEAD"),
        ("BREW", "/health", "GET,HEAD"),
    ] {
        let answer = served.client().ask(method, path, &[], b"body");
        assert_eq!(answer.error(), (405, 1002), "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allowed));
    }
}

#[test]
fn a_connection_serves_one_request_after_another_whatever_the_answers() {
    let served = Served::new();
    let mut client = served.client();
    for _ in 0..3 {
        assert_eq!(client.ask("POST", "/batches", &[], b"").status, 400);
        assert_eq!(client.ask("GET", "/nowhere", &[], b"").status, 404);
        assert_eq!(client.ask("GET", "/health", &[], b"").status, 200);
    }
}

#[test]
fn options_without_end_are_as_good_as_large_ones() {
    let served = Served::with_options(ApiOptions {
        header_limit: Duration::MAX,
        body_time_limit: Duration::MAX,
        answer_limit: Duration::MAX,
        connections: usize::MAX,
        queue_limit: usize::MAX,
        ..ApiOptions::default()
    });
    assert_eq!(served.post("/batches", b"").status, 400);
}

#[test]
fn options_that_cannot_work_are_errors() {
    let store = Served::new().store;
    let build = |options| ApiBuilder::new(store.clone()).with_options(options).build().unwrap_err();
    let error = build(ApiOptions { connections: 0, ..ApiOptions::default() });
    assert_eq!(error, ApiBuildError::Zero { option: "connections" });
    let error = build(ApiOptions { memory_limit: 1, ..ApiOptions::default() });
    assert!(error.to_string().contains("memory_limit of 1 bytes"), "{error}");
}
