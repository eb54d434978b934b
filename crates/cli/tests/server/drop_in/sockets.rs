//! Websockets of clients, at a node and at a server in front of it.

use std::{
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_test_support::{batches::signed_batch, wait::wait_until};
use tokio_tungstenite::tungstenite::{
    Error, HandshakeError, Message, WebSocket,
    client::{IntoClientRequest, client},
};

use crate::harness::{BatchHarness, BatchServer};

type Socket = WebSocket<TcpStream>;

const OWN: [u8; 32] = [7; 32];

fn open(address: SocketAddr, path: &str, key: Option<&SigningKey>) -> Result<Socket, Error> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut request = format!("ws://{address}{path}").into_client_request().unwrap();
    if let Some(key) = key {
        let token = format!("Bearer Cylinder:{}", CylinderToken::new(key).as_str());
        request.headers_mut().insert("authorization", token.parse().unwrap());
    }
    match client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(HandshakeError::Failure(error)) => Err(error),
        Err(HandshakeError::Interrupted(_)) => panic!("no answer in time"),
    }
}

fn refused_with(refused: Result<Socket, Error>) -> u16 {
    match refused {
        Err(Error::Http(response)) => response.status().as_u16(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it is open"),
    }
}

/// The next message that is no ping.
fn next(socket: &mut Socket) -> Message {
    loop {
        match socket.read().unwrap() {
            Message::Ping(_) | Message::Pong(_) => {}
            message => return message,
        }
    }
}

fn assert_same(sockets: &mut [Socket; 2], part: &str) {
    let [theirs, ours] = sockets.each_mut().map(next);
    assert!(theirs.to_text().unwrap().contains(part), "{theirs}");
    assert_eq!(theirs, ours);
}

/// A subscription at the node of a ledger, and the same at the server.
fn subscribe(
    harness: &BatchHarness,
    server: &BatchServer,
    path: &str,
    key: Option<&SigningKey>,
) -> [Socket; 2] {
    [harness.ledger.address(), server.address].map(|address| open(address, path, key).unwrap())
}

fn commit(harness: &BatchHarness, server: &BatchServer, service: &str, number: usize) {
    server.submit(&[signed_batch(service, number)]);
    let committed = || harness.ledger.record().len() > number;
    wait_until("the ledger has committed the batch", committed);
}

/// What ends the node's websockets ends those of clients.
fn assert_ends_with_the_node(harness: &BatchHarness, [theirs, mut ours]: [Socket; 2]) {
    drop(theirs);
    harness.ledger.kill();
    let end = next(&mut ours);
    assert!(matches!(&end, Message::Close(Some(frame)) if u16::from(frame.code) == 1001), "{end}");
}

#[test]
fn subscriptions_of_sawtooth_are_those_of_the_node() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve();
    commit(&harness, &server, "global", 0);
    let mut sockets = subscribe(&harness, &server, "/subscriptions", None);
    for socket in &mut sockets {
        let subscription = r#"{"action":"subscribe","address_prefixes":[]}"#;
        socket.send(Message::text(subscription)).unwrap();
    }
    assert_same(&mut sockets, "\"block_num\":\"0\"");
    commit(&harness, &server, "global", 1);
    assert_same(&mut sockets, "\"block_num\":\"1\"");
    for socket in &mut sockets {
        socket.send(Message::text(r#"{"action":"none"}"#)).unwrap();
    }
    assert_same(&mut sockets, "Unknown action");
    assert_ends_with_the_node(&harness, sockets);
    server.stop();
}

#[test]
fn subscriptions_of_scabbard_are_those_of_the_node() {
    let [own, stranger] = [SigningKey::from_bytes(OWN).unwrap(), SigningKey::from_seed(3)];
    let harness = BatchHarness::scabbard_with(1, |ledger| ledger.allow_keys([own.public_key()]));
    let server = harness.serve_with(&[("--access-mode", "none")]);
    let service = &harness.services[0];
    commit(&harness, &server, service, 0);
    let path = format!("/scabbard/{}/ws/subscribe", service.replace("::", "/"));
    let mut sockets = subscribe(&harness, &server, &path, Some(&own));
    assert_same(&mut sockets, "state_changes");
    commit(&harness, &server, service, 1);
    assert_same(&mut sockets, "state_changes");
    let unknown = format!("{path}?last_seen_event={}", "b".repeat(128));
    for address in [harness.ledger.address(), server.address] {
        assert_eq!(refused_with(open(address, &path, Some(&stranger))), 401);
        assert_eq!(refused_with(open(address, &unknown, Some(&own))), 500);
    }
    assert_ends_with_the_node(&harness, sockets);
    server.stop();
}

#[test]
fn websocket_of_a_client_is_closed_at_the_node() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve();
    let mut ours = open(server.address, "/subscriptions", None).unwrap();
    let counts = || harness.ledger.websockets();
    wait_until("the node has the websocket", || counts().open > 0);
    // The client ends without a Close frame; the node gets one.
    drop(open(server.address, "/subscriptions", None).unwrap());
    wait_until("the node's websocket is closed", || counts().closed > 0);
    server.stop();
    assert!(
        matches!(next(&mut ours), Message::Close(Some(frame)) if u16::from(frame.code) == 1001)
    );
    wait_until("the node's websockets are closed", || counts().open == 0);
    assert_eq!(counts().broken, 0);
}
