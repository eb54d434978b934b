//! Requests that a web page makes from a browser on the server's machine: they are refused.

use std::net::SocketAddr;

use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list, signed_batch},
    http::{Response, send},
    process::run,
};

use crate::harness::{BatchHarness, BatchServer, count_all};

const OCTETS: &str = "content-type: application/octet-stream";

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

/// The status, and the code of an error or 0.
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

const ALLOWED: &[(&str, &str)] = &[
    ("--http-allowed-hosts", "grid.example"),
    ("--http-allowed-origins", "https://console.example"),
];

#[test]
fn every_combination_of_headers_is_checked() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve_with(ALLOWED);
    let batch = signed_batch(&harness.services[0], 1);
    let port = server.address.port();
    let hosts = [
        (format!("127.0.0.1:{port}"), true),
        (format!("localhost:{port}"), true),
        (format!("[::1]:{port}"), true),
        ("grid.example".to_owned(), true),
        (format!("evil.example:{port}"), false),
        ("127.0.0.1.evil.example".to_owned(), false),
    ];
    let sites = ["", "same-origin", "none", "same-site", "cross-site"];
    let types = [
        (OCTETS, true),
        ("", false),
        ("content-type: text/plain", false),
        ("content-type: application/x-www-form-urlencoded", false),
        ("content-type: multipart/form-data; boundary=x", false),
    ];
    for (host, host_is_known) in &hosts {
        let own = format!("http://{host}");
        let origins = [
            ("", true, false),
            (&*own, true, false),
            ("https://console.example", true, true),
            ("https://evil.example", false, false),
            ("http://localhost:1", false, false),
            ("null", false, false),
        ];
        for (origin, origin_is_known, is_listed) in origins {
            for site in sites {
                let site_is_known = matches!(site, "" | "same-origin" | "none") || is_listed;
                let lines = [("host", &**host), ("origin", origin), ("sec-fetch-site", site)].map(
                    |(name, value)| match value {
                        "" => String::new(),
                        _ => format!("{name}: {value}"),
                    },
                );
                let lines = lines.each_ref().map(String::as_str);
                let refusal = match (host_is_known, origin_is_known && site_is_known) {
                    (false, _) => Some((421, 1030)),
                    (true, false) => Some((403, 1031)),
                    (true, true) => None,
                };
                for (content_type, is_right) in types {
                    let headers = [&lines[..], &[content_type]].concat();
                    let expected = if is_right { (202, 0) } else { (400, 42) };
                    let response = post(&server, &batch, &headers);
                    let expected = refusal.unwrap_or(expected);
                    assert_eq!(status_and_code(&response), expected, "{headers:?}");
                }
                for line in ["GET /health", "GET /batch_statuses?id=00"] {
                    let response = request(server.address, line, &lines, b"");
                    match refusal {
                        Some(expected) => {
                            assert_eq!(status_and_code(&response), expected, "{line} {lines:?}");
                        }
                        None => assert!(matches!(response.status, 200 | 400), "{line} {lines:?}"),
                    }
                }
            }
        }
    }
    harness.wait_until_all_committed(&[batch]);
    assert_eq!(count_all(&harness.store()), 1);
    server.stop();
}

#[test]
fn browser_that_asks_first_gets_no_permission() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let host = format!("host: {}", server.address);
    let headers = [
        &*host,
        "origin: https://evil.example",
        "access-control-request-method: POST",
        "access-control-request-headers: content-type,gridprotocolversion",
    ];
    let response = request(server.address, "OPTIONS /batches", &headers, b"");
    assert_eq!(status_and_code(&response), (403, 1031));
    server.stop();
}

#[test]
fn clients_without_a_browser_need_only_the_type() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let host = format!("host: {}", server.address);
    let [one, two, three] = [1, 2, 3].map(|number| signed_batch(&harness.services[0], number));
    assert_eq!(post(&server, &one, &[&host, OCTETS]).status, 202);
    assert_eq!(post(&server, &two, &[OCTETS]).status, 202, "without a host");
    // Grid's clients.
    assert_eq!(post(&server, &three, &[&host, "GridProtocolVersion: 1"]).status, 202);
    // What curl sends by default.
    let form = "content-type: application/x-www-form-urlencoded";
    let response = post(&server, &three, &[&host, form]);
    let message = response.json()["error"]["message"].as_str().unwrap().to_owned();
    let option = "-H 'Content-Type: application/octet-stream' --data-binary @FILE";
    assert!(message.contains(option), "{message}");
    harness.wait_until_all_committed(&[one, two, three]);
    server.stop();
}

#[test]
fn invalid_hosts_and_origins_are_refused_at_start() {
    let harness = BatchHarness::scabbard(1);
    for (flag, value, expected) in [
        ("--http-allowed-hosts", "grid.example:80", "without a scheme and a port"),
        ("--http-allowed-hosts", "https://grid.example", "without a scheme and a port"),
        ("--http-allowed-origins", "console.example", "is not an origin"),
        ("--http-allowed-origins", "https://console.example/", "is not an origin"),
        ("--http-allowed-origins", "null", "is not an origin"),
    ] {
        let output = run(harness.command(&[(flag, value)]));
        let message = output.error_message();
        assert!(message.contains(expected) && message.contains(value), "{message}");
    }
}
