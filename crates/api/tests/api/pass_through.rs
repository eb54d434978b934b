//! Requests that a node of the ledger answers.

use std::{
    io::{self, Write},
    net::TcpStream,
    sync::Arc,
};

use futures_util::{future::ready, stream};
use grid_batch_core::batches::{Event, LedgerStatus};
use grid_batch_core::ledger::{ForwardedRequest, ForwardedResponse, Outcome, PassThroughError};
use grid_batch_core::mocks::MockLedger;
use serde_json::json;

use crate::{
    client::Response,
    statuses::{attempt, record},
    test_server::{TestServer, batch, body, id},
};

/// The answer of a node.
pub fn answer(
    reply: Result<(u16, String), PassThroughError>,
) -> futures_util::future::BoxFuture<'static, Result<ForwardedResponse, PassThroughError>> {
    let answer = reply.map(|(status, body)| {
        let headers = vec![
            ("content-type", "application/json; charset=utf-8".to_owned()),
            ("content-length", body.len().to_string()),
        ];
        let parts = body.into_bytes().chunks(7).map(|part| Ok(part.to_vec())).collect::<Vec<_>>();
        ForwardedResponse { status, headers, body: Box::pin(stream::iter(parts)) }
    });
    Box::pin(ready(answer))
}

/// A server of a ledger that serves these paths, and answers so.
fn server(
    reply: impl Fn(&ForwardedRequest) -> Result<(u16, String), PassThroughError> + Send + Sync + 'static,
) -> TestServer {
    let mut node = MockLedger::new();
    node.expect_serves().returning(|is_post, path| match path.split('/').nth(1) {
        Some("receipts") => true,
        Some("state" | "batches" | "transactions" | "batch_statuses") => !is_post,
        _ => false,
    });
    node.expect_forward().returning(move |request| answer(reply(&request)));
    TestServer::with(|builder, _| builder.with_pass_through(Arc::new(node)))
}

fn text(response: &Response) -> (u16, &str) {
    (response.status, std::str::from_utf8(&response.body).unwrap())
}

#[test]
fn node_answers_what_belongs_to_its_interface() {
    let server = server(|request| {
        let body = request.body.as_ref().map(|body| String::from_utf8_lossy(body).into_owned());
        Ok((418, format!("{} {}", request.target(), body.unwrap_or_default())))
    });
    let response = server.get("/state?address=1cf126&limit=2");
    assert_eq!(text(&response), (418, "/state?address=1cf126&limit=2 "));
    assert_eq!(response.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(text(&server.get("/batches")), (418, "/batches "));
    let mut head = TcpStream::connect(server.address).unwrap();
    head.write_all(b"HEAD /batches HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n").unwrap();
    let head = io::read_to_string(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 418") && head.ends_with("\r\n\r\n"), "{head}");
    let receipts = server.client().request("POST", "/receipts", &[], b"[\"a\"]");
    assert_eq!(text(&receipts), (418, "/receipts [\"a\"]"));
}

#[test]
fn other_paths_and_methods_are_refused() {
    let server = server(|_| panic!("must not be forwarded"));
    for (method, path, expected) in [
        ("POST", "/state", (404, 1001)),
        ("PUT", "/state", (404, 1001)),
        ("DELETE", "/batches", (405, 1002)),
    ] {
        let response = server.client().request(method, path, &[], b"");
        assert_eq!(response.error(), expected, "{method} {path}");
    }
    // Below it, errors have the form of Splinter.
    let response = server.client().request("GET", "/admin", &[], b"");
    assert_eq!((response.status, &response.json()["code"]), (404, &"404".into()));
}

#[test]
fn node_gets_the_headers_that_concern_it() {
    let server = server(|request| Ok((200, format!("{:?}", request.headers))));
    let headers =
        ["authorization: bearer  Cylinder:a.b.c", "cookie: secret", "SplinterProtocolVersion: 1"];
    let response = server.client().request("GET", "/state", &headers, b"");
    let expected = r#"[("splinterprotocolversion", "1"), ("authorization", "Bearer Cylinder:a.b.c"), ("x-forwarded-host", "grid.test"), ("x-forwarded-proto", "http")]"#;
    assert_eq!(text(&response), (200, expected));
}

#[test]
fn failures_have_the_codes_of_the_ledger() {
    for (error, code) in [
        (PassThroughError::NoNode, 18),
        (PassThroughError::Unavailable("secret".to_owned()), 18),
        (PassThroughError::TimedOut("secret".to_owned()), 17),
    ] {
        let server = server(move |_| Err(error.clone()));
        let response = server.get("/state");
        assert_eq!(response.error(), (503, code));
        assert!(!response.message().contains("secret"));
    }
}

#[test]
fn batch_that_the_node_does_not_have_is_shown_from_here() {
    let server = server(|request| match request.path.as_str() {
        "/batch_statuses" => Ok((200, "{}".to_owned())),
        _ => Ok((404, "not at the node".to_owned())),
    });
    let (stored, other) = (batch(1), batch(2));
    server.post("/batches?service_id=a::b", &body([stored.clone()])).link();
    let path = format!("/batches/{}", id(&stored));
    let response = server.get(&path);
    assert_eq!(response.status, 200);
    let json = response.json();
    assert_eq!(json["link"], format!("http://grid.test{path}"));
    let data = &json["data"];
    assert_eq!(data["header_signature"], stored.header_signature);
    let transaction = &data["transactions"][0];
    assert_eq!(data["header"]["transaction_ids"], json!([transaction["header_signature"]]));
    assert_eq!(transaction["header"]["family_name"], "intkey");
    assert_eq!(transaction["payload"], "c2V0IGEgdG8gMQ==");

    let of_transaction =
        format!("/transactions/{}", transaction["header_signature"].as_str().unwrap());
    assert_eq!(server.get(&of_transaction).json()["data"], *transaction);

    assert_eq!(text(&server.get(&format!("/batches/{}", id(&other)))), (404, "not at the node"));
    assert_eq!(
        text(&server.get(&path.replace("batches", "transactions"))),
        (404, "not at the node")
    );
    attempt(&server, Outcome::Accepted);
    record(&server, id(&stored), Event::status(LedgerStatus::Committed), &[]);
    assert_eq!(text(&server.get(&path)), (404, "not at the node"), "it has ended");
    assert_eq!(text(&server.get(&of_transaction)), (404, "not at the node"));
}

#[test]
fn committed_batch_is_shown_while_no_node_answers() {
    let server = server(|_| Err(PassThroughError::NoNode));
    server.post("/batches?service_id=a::b", &body([batch(1)])).link();
    attempt(&server, Outcome::Accepted);
    record(&server, id(&batch(1)), Event::status(LedgerStatus::Committed), &[]);
    assert_eq!(server.get(&format!("/batches/{}", id(&batch(1)))).status, 200);
    assert_eq!(server.get(&format!("/batches/{}", id(&batch(2)))).error(), (503, 18));
}

#[test]
fn node_reports_batches_that_are_not_stored() {
    let [stored, committed, invalid] = [1, 2, 3].map(|number| id(&batch(number)));
    let server = server(move |request| {
        assert_eq!(request.query, Some(format!("id={committed},{invalid}")));
        let reasons = json!([{ "id": "ab", "message": "no" }]);
        let data = json!([
            { "id": invalid.to_string(), "status": "INVALID", "invalid_transactions": reasons },
            { "id": committed.to_string(), "status": "COMMITTED", "invalid_transactions": [] },
        ]);
        Ok((200, json!({ "data": data, "link": "x" }).to_string()))
    });
    server.post("/batches", &body([batch(1)])).link();
    let path = format!("/batch_statuses?id={committed},{stored},{invalid}");
    let response = server.get(&path);
    assert_eq!(response.statuses(), ["COMMITTED", "PENDING", "INVALID"]);
    assert_eq!(response.json()["data"][2]["invalid_transactions"][0]["message"], "no");
}
