//! Rubbish at the doors of the running program: refused in words, and those who do right are served.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

use crate::{
    batches::{batch, batches, list},
    bench::{Bench, Serving, stored},
    client::{Answer, ask, request},
};

const OCTETS: &str = "content-type: application/octet-stream";

/// Nothing was stored of what was refused, and the next who does right is served.
fn goes_on(bench: &Bench, serving: Serving) {
    let all = batches(&bench.services, 2);
    serving.hand_in(&all);
    bench.until_all_committed(&all);
    assert_eq!(stored(&bench.store()), all.len());
    serving.stop();
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: u64) {
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (status, &code.into()));
    assert!(!answer.json()["error"]["message"].as_str().unwrap().is_empty());
}

#[test]
fn what_is_no_list_is_refused() {
    let bench = Bench::scabbard(2);
    let serving = bench.serve();
    let path = format!("/batches?service_id={}", bench.services[0]);
    let post = |path: &str, headers: &[&str], body: &[u8]| {
        ask(serving.address, &request("POST", path, headers, body)).unwrap()
    };
    let right = list(&[batch(&bench.services[0], 900)]);
    refused(&post(&path, &[OCTETS], b""), 400, 34);
    refused(&post(&path, &[OCTETS], b"\xff\x00rubbish"), 400, 35);
    refused(&post(&path, &[OCTETS], &right[..right.len() - 1]), 400, 35);
    refused(&post(&path, &["content-type: text/plain"], &right), 400, 42);
    refused(&post("/batches?service_id=nowhere", &[OCTETS], &right), 400, 1008);
    refused(&post("/batches?service_id=a&service_id=b", &[OCTETS], &right), 400, 1007);
    refused(&post("/batch", &[OCTETS], &right), 404, 1001);
    refused(&post("/batch_statuses", &["content-type: application/json"], b"{}"), 400, 46);
    goes_on(&bench, serving);
}

#[test]
fn random_bytes_are_refused() {
    let bench = Bench::scabbard(2);
    let serving = bench.serve();
    let mut random = Random(1);
    let path = format!("/batches?service_id={}", bench.services[0]);
    for length in [1, 10, 100, 1_000, 10_000, 100_000] {
        let bytes = random.bytes(length);
        let answer = ask(serving.address, &request("POST", &path, &[OCTETS], &bytes)).unwrap();
        assert_eq!(answer.status, 400, "{}", answer.text);
        let mut stream = TcpStream::connect(serving.address).unwrap();
        // Whoever hears rubbish may hang up before all of it is said.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    goes_on(&bench, serving);
}

#[test]
fn a_body_of_20_megabytes_is_refused() {
    let bench = Bench::scabbard(2);
    let serving = bench.serve();
    let path = format!("/batches?service_id={}", bench.services[0]);
    let body = vec![0; 20 << 20];
    let answer = ask(serving.address, &request("POST", &path, &[OCTETS], &body)).unwrap();
    refused(&answer, 413, 1003);
    goes_on(&bench, serving);
}

#[test]
fn a_thousand_batches_in_a_list_are_taken_and_one_more_is_too_many() {
    let bench = Bench::scabbard(1);
    let serving = bench.serve();
    let mut all = batches(&bench.services, 1_001);
    refused(&serving.try_hand_in(&all).unwrap(), 413, 1004);
    all.pop();
    assert_eq!(serving.try_hand_in(&all).unwrap().status, 202);
    assert_eq!(stored(&bench.store()), 1_000);
    serving.stop();
}

#[test]
fn a_batch_twice_in_a_list_is_refused_with_all_of_the_list() {
    let bench = Bench::scabbard(2);
    let serving = bench.serve();
    let twice = [900, 901, 900].map(|number| batch(&bench.services[0], number));
    refused(&serving.try_hand_in(&twice).unwrap(), 400, 30);
    goes_on(&bench, serving);
}

#[test]
fn half_a_request_is_nothing() {
    let bench = Bench::scabbard(2);
    let serving = bench.serve();
    let path = format!("/batches?service_id={}", bench.services[0]);
    let whole = request("POST", &path, &[OCTETS], &list(&[batch(&bench.services[0], 900)]));
    for length in [1, 20, 100, whole.len() / 2, whole.len() - 1] {
        let mut stream = TcpStream::connect(serving.address).unwrap();
        stream.write_all(&whole[..length]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        // A reset is as good as an end.
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
    }
    goes_on(&bench, serving);
}

#[test]
fn a_stop_is_not_held_up_by_connections_that_say_nothing() {
    let bench = Bench::scabbard(2);
    let serving = bench.serve();
    let silent = TcpStream::connect(serving.address).unwrap();
    let mut idle = TcpStream::connect(serving.address).unwrap();
    idle.write_all(b"GET /health HTTP/1.1\r\nhost: grid.test\r\n\r\n").unwrap();
    assert!(idle.read(&mut [0; 1_000]).unwrap() > 0);
    let begun = Instant::now();
    serving.stop();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    drop((silent, idle));
}

/// Splitmix: bytes that are the same each time.
struct Random(u64);

impl Random {
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
