use std::{
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use grid_batch_api::{ApiOptions, RunningApi, ShutdownHandle};
use grid_batch_core::queries::BatchQueryStore;

use crate::{
    client::{Client, encode_request},
    test_server::{BlockedWriter, TestServer, batch, body, id},
};

/// Shuts the interface down. Returns how long that took.
fn shut_down(api: RunningApi) -> Duration {
    let started = Instant::now();
    api.wait_for_shutdown().unwrap();
    started.elapsed()
}

#[test]
fn shutdown_closes_idle_connections_and_the_listener() {
    let server = TestServer::new();
    let mut unused = server.client();
    let mut idle = server.client();
    assert_eq!(idle.request("GET", "/health", &[], b"").status, 200);
    assert!(shut_down(server.api) < Duration::from_secs(5));
    assert!(unused.is_closed());
    assert!(idle.is_closed());
    assert!(TcpStream::connect(server.address).is_err());
}

#[test]
fn dropping_the_handle_starts_the_shutdown() {
    let server = TestServer::new();
    let mut idle = server.client();
    assert_eq!(idle.request("GET", "/health", &[], b"").status, 200);
    drop(server.api);
    assert!(idle.is_closed());
}

#[test]
fn requests_in_progress_are_stored_and_answered() {
    let blocked = BlockedWriter::new(ApiOptions { write_queue_limit: 2, ..ApiOptions::default() });
    let mut clients = blocked.fill_queue();
    let BlockedWriter { mut server, mut first, release, .. } = blocked;
    server.api.signal_shutdown().unwrap();
    let shutdown = thread::spawn(move || shut_down(server.api));
    drop(release);
    first.receive().link();
    let is_stored = |number| !server.store.find(&id(&batch(number))).unwrap().is_empty();
    let mut accepted = 0;
    for (number, client) in (0..).zip(&mut clients) {
        let is_accepted = client.try_receive().is_some_and(|response| response.status == 202);
        assert_eq!(is_accepted, is_stored(number));
        accepted += usize::from(is_accepted);
    }
    assert!(accepted >= 2);
    shutdown.join().unwrap();
}

#[test]
fn queued_batches_are_stored_after_the_drain_timeout() {
    let drain_timeout = Duration::from_secs(1);
    let blocked = BlockedWriter::new(ApiOptions {
        write_queue_limit: 2,
        drain_timeout,
        ..ApiOptions::default()
    });
    let mut clients = blocked.fill_queue();
    let BlockedWriter { mut server, mut first, release, .. } = blocked;
    server.api.signal_shutdown().unwrap();
    let shutdown = thread::spawn(move || shut_down(server.api));
    // The writer is blocked, so these connections are closed without a response.
    assert!(first.is_closed());
    let closed: Vec<_> = clients.iter_mut().map(Client::is_closed).collect();
    drop(release);
    shutdown.join().unwrap();
    let is_stored = |number| !server.store.find(&id(&batch(number))).unwrap().is_empty();
    let stored: Vec<_> = (0..).zip(&closed).filter(|(number, _)| is_stored(*number)).collect();
    assert!(stored.len() >= 2 && stored.iter().all(|(_, closed)| **closed), "{stored:?}");
}

#[test]
fn shutdown_closes_connections_with_incomplete_bodies() {
    let drain_timeout = Duration::from_millis(50);
    let server = TestServer::with_options(ApiOptions { drain_timeout, ..ApiOptions::default() });
    let mut client = server.client();
    client.send("POST /batches HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nhalf");
    assert_eq!(server.get("/health").status, 200);
    assert!(shut_down(server.api) < Duration::from_secs(5));
    assert!(client.is_closed());
}

#[test]
fn shutdown_answers_requests_that_wait() {
    let mut server = TestServer::new();
    server.post("/batches", &body([batch(1)])).link();
    let mut client = server.client();
    let path = format!("/batch_statuses?id={}&wait=60", id(&batch(1)));
    client.send(encode_request("GET", &path, &[], b""));
    assert_eq!(server.get("/health").status, 200);
    let started = Instant::now();
    server.api.signal_shutdown().unwrap();
    if let Some(response) = client.try_receive() {
        assert_eq!(response.statuses(), ["PENDING"]);
    }
    shut_down(server.api);
    assert!(started.elapsed() < Duration::from_secs(5));
}
