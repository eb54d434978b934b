use std::time::Duration;

use grid_batch_api::ApiOptions;
use grid_batch_protocol::{BatchBuilder, SigningKey, TransactionBuilder};

use crate::{
    client::encode_request,
    test_server::{BlockedWriter, TestServer, batch, body, wait_until},
};

const MIB: usize = 1024 * 1024;

fn header_with_length(length: usize) -> String {
    format!(
        "POST /batches HTTP/1.1\r\nhost: h\r\ncontent-type: application/octet-stream\r\n\
         content-length: {length}\r\n\r\n"
    )
}

/// A header whose sender waits for the permission to send the body.
fn expecting_header(length: usize) -> String {
    header_with_length(length).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n")
}

const CHUNKED: &str = "POST /batches HTTP/1.1\r\nhost: h\r\n\
    content-type: application/octet-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One chunk of a chunked body.
fn chunk(length: usize) -> Vec<u8> {
    let mut chunk = format!("{length:x}\r\n").into_bytes();
    chunk.resize(chunk.len() + length, b'x');
    chunk.extend_from_slice(b"\r\n");
    chunk
}

#[test]
fn announced_long_body_is_refused_before_it_is_sent() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send(header_with_length(20 * MIB));
    assert_eq!(client.receive().error(), (413, 1003));
}

#[test]
fn long_body_is_refused_instead_of_continue() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send(expecting_header(20 * MIB));
    assert_eq!(client.receive().error(), (413, 1003));

    let list = body([batch(1)]);
    let mut client = server.client();
    client.send(expecting_header(list.len()));
    assert_eq!(client.receive().status, 100);
    client.send(list);
    client.receive().link();
}

#[test]
fn refusal_is_readable_after_sending_a_long_body() {
    let server = TestServer::new();
    let mut client = server.client();
    client.try_send(encode_request("POST", "/batches", &[], &vec![b'x'; 20 * MIB])).unwrap();
    assert_eq!(client.receive().error(), (413, 1003));
}

#[test]
fn long_chunked_body_is_refused_before_it_ends() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send(CHUNKED);
    for _ in 0..11 {
        client.send(chunk(MIB));
    }
    assert_eq!(client.receive().error(), (413, 1003));
}

#[test]
fn body_of_exactly_the_limit_is_accepted() {
    let list = body([batch(1)]);
    let server =
        TestServer::with_options(ApiOptions { body_limit: list.len(), ..ApiOptions::default() });
    server.post("/batches", &list).link();
    assert_eq!(server.post("/batches", &[&list[..], b"x"].concat()).error(), (413, 1003));
}

#[test]
fn batch_of_nine_mebibytes_is_accepted() {
    let server = TestServer::new();
    let key = SigningKey::from_seed(7);
    let transaction = TransactionBuilder::new("sabre", "1.0")
        .payload(vec![0; 9 * MIB])
        .sign(&key, &key.public_key());
    let large = BatchBuilder::new().transaction(transaction).sign(&key);
    server.post("/batches", &body([large])).link();
}

#[test]
fn memory_of_all_bodies_is_limited_and_released() {
    let options = ApiOptions { body_limit: MIB, memory_limit: 2 * MIB, ..ApiOptions::default() };
    let server = TestServer::with_options(options);
    let list = body([batch(1)]);
    let mut unfinished = Vec::new();
    let refusal = loop {
        let mut client = server.client();
        client.send(CHUNKED);
        client.send(chunk(MIB));
        unfinished.push(client);
        let response = server.post("/batches", &list);
        if response.status != 202 {
            break response;
        }
    };
    assert_eq!(refusal.error(), (429, 31));
    assert_eq!(server.get("/health").status, 200);
    for client in unfinished {
        client.close();
    }
    wait_until(|| server.post("/batches", &list).status == 202);
}

#[test]
fn full_write_queue_refuses_requests_until_it_drains() {
    let blocked = BlockedWriter::new(ApiOptions { write_queue_limit: 2, ..ApiOptions::default() });
    let mut clients = blocked.fill_queue();
    let BlockedWriter { server, mut first, release, .. } = blocked;
    assert_eq!(server.post("/batches", &body([batch(9)])).error(), (429, 31));
    drop(release);
    first.receive().link();
    let responses = clients.iter_mut().map(|client| client.receive().status);
    assert!(responses.filter(|status| *status == 202).count() >= 2);
    server.post("/batches", &body([batch(9)])).link();
}

#[test]
fn slow_body_times_out_with_a_response() {
    let body_timeout = Duration::from_millis(100);
    let server = TestServer::with_options(ApiOptions { body_timeout, ..ApiOptions::default() });
    let mut client = server.client();
    client.send(header_with_length(100));
    client.send("incomplete");
    assert_eq!(client.receive().error(), (408, 1005));
}

#[test]
fn connection_without_a_complete_header_is_closed() {
    let header_timeout = Duration::from_millis(100);
    let server = TestServer::with_options(ApiOptions { header_timeout, ..ApiOptions::default() });
    assert!(server.client().is_closed());
    let mut client = server.client();
    client.send("POST /batches HTTP/1.1\r\nhost: ");
    assert!(client.is_closed());
    let mut client = server.client();
    assert_eq!(client.request("GET", "/health", &[], b"").status, 200);
    assert!(client.is_closed(), "the connection is idle");
}

#[test]
fn connection_that_reads_no_responses_is_closed() {
    let options = ApiOptions {
        write_timeout: Duration::from_millis(100),
        max_connections: 1,
        ..ApiOptions::default()
    };
    let server = TestServer::with_options(options);
    let ids = vec!["0".repeat(128); 400].join(",");
    let request = encode_request("GET", &format!("/batch_statuses?id={ids}"), &[], b"");
    let mut client = server.client();
    let sender = std::thread::spawn(move || {
        for _ in 0..500 {
            client.send(&request);
        }
        client
    });
    // Only one connection is allowed, so this succeeds after the other one is closed.
    assert_eq!(server.get("/health").status, 200);
    drop(sender.join());
}

#[test]
fn idle_connection_gives_its_place_to_a_new_one() {
    let server =
        TestServer::with_options(ApiOptions { max_connections: 1, ..ApiOptions::default() });
    let mut first = server.client();
    assert_eq!(first.request("GET", "/health", &[], b"").status, 200);
    let mut second = server.client();
    assert_eq!(second.request("GET", "/health", &[], b"").status, 200);
    assert!(first.is_closed());
}

#[test]
fn requests_of_one_address_are_limited_and_health_is_not() {
    let options = ApiOptions { max_requests_of_address: 1, ..ApiOptions::default() };
    let server = TestServer::with_options(options);
    let list = body([batch(1)]);
    let mut unfinished = server.client();
    unfinished.send(expecting_header(list.len()));
    assert_eq!(unfinished.receive().status, 100);
    assert_eq!(server.post("/batches", &list).error(), (429, 31));
    assert_eq!(server.get("/health").status, 200);
    assert_eq!(server.get("/health/live").status, 200);
    unfinished.send(&list);
    unfinished.receive().link();
    wait_until(|| server.post("/batches", &list).status == 202);
}

#[test]
fn too_many_or_too_long_headers_are_refused() {
    let server = TestServer::new();
    let mut many = server.client();
    many.send("GET /health HTTP/1.1\r\nhost: h\r\n");
    many.send("x: y\r\n".repeat(10_000));
    many.send("\r\n");
    assert!(many.try_receive().is_none_or(|response| response.status == 431));
    let mut long = server.client();
    long.send(format!("GET /health HTTP/1.1\r\nhost: h\r\nx: {}\r\n\r\n", "y".repeat(MIB)));
    assert!(long.try_receive().is_none_or(|response| response.status == 431));
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn too_long_url_is_refused() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send(encode_request(
        "GET",
        &format!("/batch_statuses?id={}", "a".repeat(70_000)),
        &[],
        b"",
    ));
    assert!(client.try_receive().is_none_or(|response| response.status == 414));
    assert_eq!(server.get("/health").status, 200);
}
