//! Requests that a web page makes from a browser on the server's machine: they are refused.

use std::net::SocketAddr;

use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list, signed_batch},
    http::{Response, send},
};

use crate::harness::{BatchHarness, BatchServer, count_all};

const OCTETS: &str = "content-type: application/octet-stream";
const JSON: &str = "content-type: application/json";

/// A request with exactly these headers.
fn request(address: SocketAddr, line: &str, headers: &[&str], body: &[u8]) -> Response {
    let length = body.len();
    let mut head = format!("{line} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n");
    for header in headers.iter().filter(|header| !header.is_empty()) {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    send(address, &[head.as_bytes(), body].concat()).unwrap()
}

/// Posts a batch with exactly these headers.
fn post(server: &BatchServer, batch: &SignedBatch, headers: &[&str]) -> Response {
    let line = format!("POST /batches?service_id={}", batch.service_id);
    request(server.address, &line, headers, &encode_batch_list(std::slice::from_ref(batch)))
}

fn status_and_code(response: &Response) -> (u16, u64) {
    match response.status {
        200..=299 => (response.status, 0),
        _ => (response.status, response.json()["error"]["code"].as_u64().unwrap()),
    }
}

#[test]
fn web_page_hands_in_nothing() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let local = format!("host: {}", server.address);
    let port = server.address.port();
    let other_port = format!("origin: http://127.0.0.1:{}", port ^ 1);
    let rebound = format!("host: evil.example:{port}");
    let rebound_origin = format!("origin: http://evil.example:{port}");
    let page = "origin: https://evil.example";
    let requests: &[&[&str]] = &[
        // What `fetch` sends without asking the server first, from another site.
        &[&local, page, "sec-fetch-site: cross-site"],
        &[&local, page, "sec-fetch-site: cross-site", "content-type: text/plain"],
        &[&local, page, "sec-fetch-site: cross-site", OCTETS],
        // The same from a browser that does not send one of the headers.
        &[&local, "sec-fetch-site: cross-site", OCTETS],
        &[&local, page, OCTETS],
        &[&local],
        // A form.
        &[&local, "origin: null", "content-type: application/x-www-form-urlencoded"],
        &[&local, "origin: null", OCTETS],
        // A page of another program on this machine.
        &[&local, &other_port, "sec-fetch-site: same-site", OCTETS],
        // A page whose name was made to resolve to this machine.
        &[&rebound, &rebound_origin, "sec-fetch-site: same-origin", OCTETS],
        &[&rebound, OCTETS],
    ];
    let mut accepted = Vec::new();
    for (number, headers) in requests.iter().enumerate() {
        let response = post(&server, &signed_batch(&harness.services[0], number), headers);
        println!("{} for {headers:?}", response.status);
        if response.status == 202 {
            accepted.push(headers);
        }
    }
    assert_eq!(accepted, Vec::<&&[&str]>::new());
    assert_eq!(count_all(&harness.store()), 0);
    server.stop();
}
