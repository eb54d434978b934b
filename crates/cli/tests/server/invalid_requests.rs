//! Invalid requests are rejected with an error, and the server still serves valid ones.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

use grid_batch_test_support::{
    batches::{encode_batch_list, signed_batch, signed_batches},
    http::{Response, request, send},
};

use crate::harness::{BatchHarness, BatchServer, count_all};

const OCTETS: &str = "content-type: application/octet-stream";

/// Asserts that the rejected requests stored nothing and that the server still works.
fn assert_still_serves(harness: &BatchHarness, server: BatchServer) {
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    assert_eq!(count_all(&harness.store()), batches.len());
    server.stop();
}

#[track_caller]
fn assert_error(response: &Response, status: u16, code: u64) {
    assert_eq!((response.status, &response.json()["error"]["code"]), (status, &code.into()));
    assert!(!response.json()["error"]["message"].as_str().unwrap().is_empty());
}

#[test]
fn invalid_lists_are_rejected() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve();
    let path = format!("/batches?service_id={}", harness.services[0]);
    let post = |path: &str, headers: &[&str], body: &[u8]| {
        send(server.address, &request("POST", path, headers, body)).unwrap()
    };
    let valid = encode_batch_list(&[signed_batch(&harness.services[0], 900)]);
    assert_error(&post(&path, &[OCTETS], b""), 400, 34);
    assert_error(&post(&path, &[OCTETS], b"\xff\x00rubbish"), 400, 35);
    assert_error(&post(&path, &[OCTETS], &valid[..valid.len() - 1]), 400, 35);
    assert_error(&post(&path, &["content-type: text/plain"], &valid), 400, 42);
    assert_error(&post("/batches?service_id=nowhere", &[OCTETS], &valid), 400, 1008);
    assert_error(&post("/batches?service_id=a&service_id=b", &[OCTETS], &valid), 400, 1007);
    assert_error(&post("/batch", &[OCTETS], &valid), 404, 1001);
    assert_error(&post("/batch_statuses", &["content-type: application/json"], b"{}"), 400, 46);
    assert_still_serves(&harness, server);
}

#[test]
fn random_bytes_are_rejected() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve();
    let mut random = SplitMix64(1);
    let path = format!("/batches?service_id={}", harness.services[0]);
    for length in [1, 10, 100, 1_000, 10_000, 100_000] {
        let bytes = random.bytes(length);
        let response = send(server.address, &request("POST", &path, &[OCTETS], &bytes)).unwrap();
        assert_eq!(response.status, 400, "{}", response.body);
        let mut stream = TcpStream::connect(server.address).unwrap();
        // The server may close the connection before it has read all bytes.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert_still_serves(&harness, server);
}

#[test]
fn body_of_20_mebibytes_is_rejected() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve();
    let path = format!("/batches?service_id={}", harness.services[0]);
    let body = vec![0; 20 << 20];
    let response = send(server.address, &request("POST", &path, &[OCTETS], &body)).unwrap();
    assert_error(&response, 413, 1003);
    assert_still_serves(&harness, server);
}

#[test]
fn list_is_limited_to_1000_batches() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let mut batches = signed_batches(&harness.services, 1_001);
    assert_error(&server.post(&batches).unwrap(), 413, 1004);
    batches.pop();
    assert_eq!(server.post(&batches).unwrap().status, 202);
    assert_eq!(count_all(&harness.store()), 1_000);
    server.stop();
}

#[test]
fn list_with_a_duplicate_batch_is_rejected() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve();
    let twice = [900, 901, 900].map(|number| signed_batch(&harness.services[0], number));
    assert_error(&server.post(&twice).unwrap(), 400, 30);
    assert_still_serves(&harness, server);
}

#[test]
fn incomplete_request_stores_nothing() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve();
    let path = format!("/batches?service_id={}", harness.services[0]);
    let complete = request(
        "POST",
        &path,
        &[OCTETS],
        &encode_batch_list(&[signed_batch(&harness.services[0], 900)]),
    );
    for length in [1, 20, 100, complete.len() / 2, complete.len() - 1] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(&complete[..length]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut response = Vec::new();
        // The server may also reset the connection.
        let _ = stream.read_to_end(&mut response);
        assert!(!response.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&response));
    }
    assert_still_serves(&harness, server);
}

#[test]
fn idle_connections_do_not_delay_shutdown() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve();
    let unread = TcpStream::connect(server.address).unwrap();
    let mut idle = TcpStream::connect(server.address).unwrap();
    idle.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    assert!(idle.read(&mut [0; 1_000]).unwrap() > 0);
    let started = Instant::now();
    server.stop();
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    drop((unread, idle));
}

/// `SplitMix64`: the same bytes in every run.
struct SplitMix64(u64);

impl SplitMix64 {
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
