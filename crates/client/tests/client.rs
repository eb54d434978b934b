//! The client against a server with prepared answers.
#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use grid_batch_client::{Client, ClientError, ClientOptions};
use grid_batch_core::ItemId;
use serde_json::json;

/// A request as the server has received it.
struct Received {
    head: String,
    body: String,
}

/// Answers each connection with one of these responses. Returns the URL and what is received.
fn serve(responses: &[&str]) -> (String, Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = channel();
    let responses: Vec<String> = responses.iter().map(|text| (*text).to_owned()).collect();
    thread::spawn(move || {
        for response in responses {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
            }
            let length = head.to_lowercase().lines().find_map(|line| {
                line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok()
            });
            let mut body = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut body).unwrap();
            let body = String::from_utf8_lossy(&body).into_owned();
            sender.send(Received { head, body }).unwrap();
            reader.get_mut().write_all(response.as_bytes()).unwrap();
        }
    });
    (url, received)
}

fn response(head: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

fn client(url: String) -> Client {
    Client::new(ClientOptions { url, token: Some("gb_x\n".to_owned()), ..ClientOptions::default() })
        .unwrap()
}

#[test]
fn list_is_submitted_with_its_service_label_and_token() {
    let id = ItemId::from_bytes([7; 64]);
    let body = format!(r#"{{"data": [{{"id": "{id}", "service_id": "a::b", "link": "x"}}]}}"#);
    let (url, received) = serve(&[&response("202 Accepted", &body)]);
    let stored = client(url).submit(b"list", Some("a::b"), Some("of me"), false).unwrap();
    assert_eq!((stored.len(), stored[0].id, stored[0].service_id.as_str()), (1, id, "a::b"));
    let request = received.recv().unwrap();
    assert!(request.head.starts_with("POST /v1/batches?service_id=a%3A%3Ab&label=of%20me HTTP"));
    assert!(request.head.to_lowercase().contains("authorization: bearer gb_x\r\n"));
    assert_eq!(request.body, "list");
}

#[test]
fn requests_carry_the_trace() {
    let (url, received) = serve(&[&response("202 Accepted", r#"{"data": []}"#)]);
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let trace = Some(format!("{parent} a=1").parse().unwrap());
    let client = Client::new(ClientOptions { url, trace, ..ClientOptions::default() }).unwrap();
    client.submit(b"list", None, None, false).unwrap();
    let head = received.recv().unwrap().head.to_lowercase();
    assert!(head.contains(&format!("traceparent: {parent}\r\n")), "{head}");
    assert!(head.contains("tracestate: a=1\r\n"), "{head}");
}

#[test]
fn batches_are_said_to_be_new() {
    let (url, received) = serve(&[&response("202 Accepted", r#"{"data": []}"#)]);
    client(url).submit(b"list", Some("a::b"), None, true).unwrap();
    let head = received.recv().unwrap().head;
    assert!(head.starts_with("POST /v1/batches?service_id=a%3A%3Ab&new=true HTTP"), "{head}");
}

#[test]
fn service_is_acted_on_with_a_reason() {
    let (url, received) = serve(&[&response("200 OK", r#"{"verb": "pause"}"#)]);
    let done = client(url)
        .post("/v1/services/a%3A%3Ab/pause", &[], &json!({"reason": "an \"update\""}))
        .unwrap();
    assert_eq!(done["verb"], "pause");
    let request = received.recv().unwrap();
    assert!(request.head.starts_with("POST /v1/services/a%3A%3Ab/pause HTTP"), "{}", request.head);
    assert_eq!(request.body, r#"{"reason":"an \"update\""}"#);
}

#[test]
fn idempotency_key_is_a_header() {
    let (url, received) = serve(&[&response("202 Accepted", r#"{"id": "5"}"#)]);
    let body = json!({"account": "treasury"});
    let stored = client(url).post_once("/v1/transactions", "invoice 17", &body).unwrap();
    assert_eq!(stored["id"], "5");
    let request = received.recv().unwrap();
    assert!(request.head.starts_with("POST /v1/transactions HTTP"), "{}", request.head);
    let head = request.head.to_lowercase();
    assert!(head.contains("idempotency-key: invoice 17\r\n"), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    assert_eq!(request.body, r#"{"account":"treasury"}"#);
}

#[test]
fn statuses_are_read_with_a_wait() {
    let ids = [1, 2].map(|number| ItemId::from_bytes([number; 64]));
    let data = [(ids[0], "COMMITTED"), (ids[1], "PENDING")].map(|(id, status)| {
        let progress = r#""progress": {"last_error": "503: busy"}"#;
        format!(r#"{{"id": "{id}", "status": "{status}", {progress}}}"#)
    });
    let body = format!(r#"{{"data": [{}], "link": "x"}}"#, data.join(","));
    let (url, received) = serve(&[&response("200 OK", &body)]);
    let statuses = client(url).statuses(&ids, None, Some(Duration::from_secs(3_600))).unwrap();
    assert!(statuses[0].is_committed() && statuses[0].has_ended());
    assert!(!statuses[1].has_ended() && !statuses[1].is_invalid());
    assert_eq!(statuses[1].error(), Some("503: busy"));
    let request = received.recv().unwrap();
    assert!(request.head.starts_with("POST /batch_statuses?wait=60 "), "{}", request.head);
    assert!(request.body.contains(&ids[1].to_string()), "{}", request.body);
}

#[test]
fn errors_say_what_can_be_done() {
    let problem = r#"{"title": "T", "detail": "what is wrong", "code": 7}"#;
    let busy = response("503 Busy\r\nretry-after: 9", problem);
    let refused = response("409 Conflict", problem);
    let html = response("502 Bad Gateway", "<html>");
    let junk = response("200 OK", "junk");
    let (url, _received) = serve(&[&busy, &refused, &html, &junk]);
    let client = client(url);
    let next = || client.get("/v1/services", &[]).unwrap_err();
    let ClientError::Busy { problem, retry_after } = next() else { panic!("not busy") };
    assert_eq!(problem.to_string(), "what is wrong (code 7)");
    assert_eq!(retry_after, Some(Duration::from_secs(9)));
    let ClientError::Refused { status, .. } = next() else { panic!("not refused") };
    assert_eq!(status, 409);
    for _ in 0..2 {
        assert!(matches!(next(), ClientError::NotUnderstood { .. }));
    }
}

#[test]
fn unusable_url_is_named_without_its_password() {
    let options = |url: &str| ClientOptions { url: url.to_owned(), ..ClientOptions::default() };
    let client = Client::new(options("ftp://user:hidden@host")).unwrap();
    let error = client.get("/v1/services", &[]).unwrap_err();
    assert!(matches!(error, ClientError::Url { .. }), "{error}");
    assert!(!error.to_string().contains("hidden"), "{error}");
}
