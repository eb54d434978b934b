use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use grid_batch_api::{
    ApiBuildError, ApiBuilder, ApiOptions, HealthPart, HealthReport, HealthStatus,
};
use serde_json::json;

use crate::test_server::TestServer;

fn unhealthy_part() -> HealthPart {
    HealthPart {
        status: HealthStatus::Unhealthy,
        reason: Some("it does not answer".to_owned()),
        for_seconds: 3.0,
        numbers: [("connections", 7)].into(),
    }
}

#[test]
fn health_reports_the_parts_and_their_reasons() {
    let unhealthy = Arc::new(AtomicBool::new(false));
    let is_unhealthy = Arc::clone(&unhealthy);
    let server = TestServer::with(|builder, _| {
        builder.with_health(move || {
            if is_unhealthy.load(Ordering::Relaxed) {
                HealthReport::new([("database", unhealthy_part())].into())
            } else {
                HealthReport::default()
            }
        })
    });
    let response = server.get("/health");
    assert_eq!((response.status, response.json()), (200, json!({ "status": "ok" })));
    unhealthy.store(true, Ordering::Relaxed);
    let response = server.get("/health");
    let expected = json!({
        "status": "unhealthy",
        "reasons": ["it does not answer"],
        "parts": {
            "database": {
                "status": "unhealthy", "reason": "it does not answer", "for_seconds": 3.0,
                "connections": 7,
            },
        },
    });
    assert_eq!((response.status, response.json()), (503, expected));
}

#[test]
fn server_is_ready_unless_a_part_is_unhealthy() {
    let unhealthy = Arc::new(AtomicBool::new(false));
    let is_unhealthy = Arc::clone(&unhealthy);
    let server = TestServer::with(|builder, _| {
        builder.with_health(move || {
            let degraded = HealthPart { status: HealthStatus::Degraded, ..HealthPart::default() };
            let database = if is_unhealthy.load(Ordering::Relaxed) {
                unhealthy_part()
            } else {
                HealthPart::default()
            };
            HealthReport::new([("services", degraded), ("database", database)].into())
        })
    });
    let response = server.get("/health/ready");
    assert_eq!((response.status, &response.json()["status"]), (200, &json!("ok")));
    assert_eq!(response.json()["parts"]["running"]["status"], "ok");
    unhealthy.store(true, Ordering::Relaxed);
    let response = server.get("/health/ready");
    assert_eq!((response.status, &response.json()["status"]), (503, &json!("unhealthy")));
}

#[test]
fn metrics_have_the_requests_and_what_the_server_adds() {
    let server = TestServer::with(|builder, _| {
        builder.with_metrics(|text| text.gauge("added", "Added by the server.", 7.0))
    });
    server.get("/batch_statuses?id=1");
    server.get("/nowhere");
    let response = server.get("/metrics");
    let content_type = response.header("content-type").unwrap();
    assert_eq!((response.status, content_type), (200, "text/plain; version=0.0.4; charset=utf-8"));
    let text = String::from_utf8(response.body).unwrap();
    for expected in [
        "# TYPE added gauge\nadded 7\n",
        "{route=\"/batch_statuses\",method=\"GET\",status=\"400\"} 1\n",
        "{route=\"other\",method=\"GET\",status=\"404\"} 1\n",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let accept = "accept: application/openmetrics-text; version=1.0.0";
    let response = server.client().request("GET", "/metrics", &[accept], b"");
    let content_type = response.header("content-type").unwrap();
    assert!(content_type.starts_with("application/openmetrics-text"), "{content_type}");
    assert!(response.body.ends_with(b"# EOF\n"));
}

#[test]
fn unknown_paths_and_methods_are_refused_with_a_code() {
    let server = TestServer::new();
    for path in ["/batches/", "/batches/x", "/Batches", "/%zz"] {
        assert_eq!(server.get(path).error(), (404, 1001), "{path}");
        assert_eq!(server.post(path, b"body").error(), (404, 1001), "{path}");
    }
    for (method, path, allowed) in [
        ("GET", "/batches", "POST"),
        ("PUT", "/batch_statuses", "GET,HEAD,POST"),
        ("DELETE", "/health", "GET,HEAD"),
        ("BREW", "/health", "GET,HEAD"),
    ] {
        let response = server.client().request(method, path, &[], b"body");
        assert_eq!(response.error(), (405, 1002), "{method} {path}");
        assert_eq!(response.header("allow"), Some(allowed));
    }
}

#[test]
fn connection_is_reused_after_errors() {
    let server = TestServer::new();
    let mut client = server.client();
    for _ in 0..3 {
        assert_eq!(client.request("POST", "/batches", &[], b"").status, 400);
        assert_eq!(client.request("GET", "/nowhere", &[], b"").status, 404);
        assert_eq!(client.request("GET", "/health", &[], b"").status, 200);
    }
}

#[test]
fn huge_options_are_capped() {
    let server = TestServer::with_options(ApiOptions {
        header_timeout: Duration::MAX,
        body_timeout: Duration::MAX,
        write_timeout: Duration::MAX,
        max_connections: usize::MAX,
        write_queue_limit: usize::MAX,
        ..ApiOptions::default()
    });
    assert_eq!(server.post("/batches", b"").status, 400);
}

#[test]
fn invalid_options_are_errors() {
    let store = TestServer::new().store;
    let build = |options| {
        ApiBuilder::new(store.clone(), store.clone()).with_options(options).build().unwrap_err()
    };
    let error = build(ApiOptions { max_connections: 0, ..ApiOptions::default() });
    assert_eq!(error, ApiBuildError::Zero { option: "max_connections" });
    let error = build(ApiOptions { memory_limit: 1, ..ApiOptions::default() });
    assert!(error.to_string().contains("memory_limit is 1 bytes"), "{error}");
}

#[test]
fn dashboard_is_served_without_a_token_and_with_a_policy() {
    let server = TestServer::new();
    let root = server.get("/");
    assert_eq!((root.status, root.header("location")), (307, Some("/dashboard")));
    for (path, content_type) in [
        ("/dashboard", "text/html; charset=utf-8"),
        ("/dashboard/app.js", "text/javascript; charset=utf-8"),
        ("/dashboard/views/held.js", "text/javascript; charset=utf-8"),
        ("/dashboard/style.css", "text/css; charset=utf-8"),
    ] {
        let response = server.get(path);
        assert_eq!((response.status, response.header("content-type")), (200, Some(content_type)));
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
    }
    assert_eq!(server.get("/dashboard/../Cargo.toml").status, 404);
    assert_eq!(server.get("/dashboard/unknown.js").error(), (404, 1001));
}
