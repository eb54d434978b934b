//! Clients that open many connections or send slowly do not shut others out.

use std::{
    io::Write,
    net::TcpStream,
    time::{Duration, Instant},
};

use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    http::{request, send_with_timeout},
    process::with_shell_setup,
};

use crate::harness::{BatchHarness, BatchServer};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// Much shorter than the time limits of a connection, which would free a place in any case.
const SOON: Duration = Duration::from_secs(8);
/// Together longer than the memory that is left beside slow bodies.
const BATCHES: usize = 100;
/// The server has read all bodies after this time.
const FILLING: Duration = Duration::from_secs(5);

fn open(server: &BatchServer, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    // The server may close the connection before it has read everything.
    let _ = stream.write_all(bytes);
    stream
}

/// Asserts that the health is shown and a batch is accepted, and prints how long both take.
fn assert_served(harness: &BatchHarness, server: BatchServer) {
    let started = Instant::now();
    let health = send_with_timeout(server.address, &request("GET", "/health", &[], b""), SOON);
    println!("health after {:.2?}", started.elapsed());
    assert_eq!(health.unwrap().status, 200);
    let batches = signed_batches(&harness.services, BATCHES);
    let response = loop {
        let response = server.post(&batches).unwrap();
        if response.status == 202 || started.elapsed() > SOON {
            break response;
        }
    };
    println!("intake after {:.2?}", started.elapsed());
    assert_eq!(response.status, 202, "{response:?}");
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    harness.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn half_open_requests_shut_no_client_out() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let half = b"POST /batches HTTP/1.1\r\nhost: grid.test\r\n";
    let half_open: Vec<TcpStream> = (0..1_100).map(|_| open(&server, half)).collect();
    assert_served(&harness, server);
    drop(half_open);
}

/// A request of which the last byte is missing.
fn unfinished_post(length: usize) -> Vec<u8> {
    let header = format!(
        "POST /batches HTTP/1.1\r\nhost: grid.test\r\ncontent-type: application/octet-stream\r\n\
         content-length: {}\r\n\r\n",
        length + 1
    );
    [header.as_bytes(), &vec![0; length]].concat()
}

/// Posts until there is no memory for a body. A slow body may give up its memory before that.
fn wait_until_refused(server: &BatchServer, batches: &[SignedBatch]) {
    let started = Instant::now();
    while server.post(batches).unwrap().status != 429 && started.elapsed() < FILLING {}
    println!("posted until {:.2?}", started.elapsed());
}

#[test]
fn slow_bodies_shut_no_client_out() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    // More than all of the memory for bodies, 64 MiB, in ever smaller pieces.
    let lengths = [9 * MIB; 7].into_iter().chain([32 * KIB; 64]).chain([KIB; 64]);
    let slow: Vec<TcpStream> =
        lengths.map(|length| open(&server, &unfinished_post(length))).collect();
    wait_until_refused(&server, &signed_batches(&harness.services, BATCHES));
    assert_served(&harness, server);
    drop(slow);
}

#[test]
fn idle_connections_leave_descriptors_for_the_database() {
    let harness = BatchHarness::scabbard(1);
    let command =
        harness.command(&[("--ledger-event-sockets", "10"), ("--submit-concurrency", "20")]);
    let server = BatchServer::start(with_shell_setup("ulimit -n 300", command));
    let idle: Vec<TcpStream> = (0..400).map(|_| open(&server, b"")).collect();
    assert_served(&harness, server);
    drop(idle);
}
