use std::{io::ErrorKind, net::TcpStream, time::Duration};

use grid_batch_ledger_sim::{Fault, SentTwice, WebSocketCounts, When};
use grid_batch_protocol::{Batch, CylinderToken};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{
    Error, Message, WebSocket, client, client::IntoClientRequest, handshake::HandshakeError,
    http::HeaderValue,
};

use crate::{
    batches::{batch, key, list, transaction_id, unknown},
    client::{READ_TIMEOUT, Request},
    ledgers::{Ledger, OTHER_SERVICE, SERVICE, authorized, sawtooth, scabbard, service_path},
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn scabbard_sends_every_committed_transaction() {
    let ledger = scabbard(|b| b.pending_for(SECOND));
    let mut socket = subscribe(&ledger, "");
    ledger.submit(&[batch(1), batch(2)]);
    ledger.advance(1);
    ledger.record();
    let id = transaction_id(&batch(1)).to_string();
    let frame = json!({
        "id": id,
        "state_changes": [{ "Set": { "key": id[..70], "value": [1] } }],
    });
    assert_eq!(next(&mut socket), frame);
    ledger.advance(1);
    ledger.record();
    assert_eq!(next_id(&mut socket), id_of(&batch(2)));
}

#[test]
fn scabbard_omits_invalid_batches_and_other_services() {
    let ledger = scabbard(|b| b.fault(Fault::Invalid, When::Next(1)));
    let mut socket = subscribe(&ledger, "");
    ledger.submit(&[batch(1)]);
    let other = Request::post(service_path(OTHER_SERVICE, "batches"));
    ledger.send(&authorized(other).body(list(&[batch(2)])));
    ledger.submit(&[batch(3)]);
    assert_eq!(next_id(&mut socket), id_of(&batch(3)));
}

#[test]
fn scabbard_sends_no_event_for_a_second_application() {
    let ledger = scabbard(|b| b.sent_twice(SentTwice::StuckValid));
    ledger.submit(&[batch(1)]);
    let mut socket = subscribe(&ledger, &format!("?last_seen_event={}", id_of(&batch(1))));
    ledger.submit(&[batch(1), batch(2)]);
    ledger.advance(30);
    assert_eq!(ledger.applied().len(), 3);
    assert_eq!(next_id(&mut socket), id_of(&batch(2)));
}

#[test]
fn scabbard_replays_earlier_events_and_continues() {
    let ledger = scabbard(|b| b);
    ledger.submit(&[batch(1)]);
    let mut socket = subscribe(&ledger, "");
    ledger.submit(&[batch(2)]);
    assert_eq!([(); 2].map(|()| next_id(&mut socket)), [1, 2].map(|n| id_of(&batch(n))));
}

#[test]
fn scabbard_replays_greater_ids_instead_of_later_ones() {
    let ledger = scabbard(|b| b);
    let mut batches: Vec<_> = (0..10).map(batch).collect();
    batches.sort_by_key(id_of);
    batches.reverse();
    ledger.submit(&batches);
    // The ids of all later events are smaller than that of the first one.
    let mut socket = subscribe(&ledger, &format!("?last_seen_event={}", id_of(&batches[0])));
    ledger.submit(&[batch(99)]);
    assert_eq!(next_id(&mut socket), id_of(&batch(99)));
}

#[test]
fn scabbard_refuses_invalid_subscriptions() {
    let ledger = scabbard(|b| b);
    let refused = |query: &str| try_subscribe(&ledger, query).unwrap_err();
    assert_eq!(refused("?last_seen_event="), 400);
    assert_eq!(refused(&format!("?last_seen_event={}", unknown())), 500);
    let path = service_path(SERVICE, "ws/subscribe");
    assert_eq!(ledger.send(&authorized(Request::get(path.clone()))).status(), 500);
    assert_eq!(ledger.send(&Request::get(path)).status(), 401);
}

#[test]
fn broken_event_fault_resets_the_websocket() {
    let ledger = scabbard(|b| b.fault(Fault::EventsBroken, When::Next(1)));
    let mut socket = subscribe(&ledger, "");
    ledger.submit(&[batch(1)]);
    assert_reset(&mut socket);
    let mut socket = subscribe(&ledger, "");
    assert_eq!(next_id(&mut socket), id_of(&batch(1)));
}

#[test]
fn late_replay_fault_delays_earlier_and_later_events() {
    let ledger = scabbard(|b| b.fault(Fault::LateReplay(60 * SECOND), When::Next(1)));
    ledger.submit(&[batch(1)]);
    let mut socket = subscribe(&ledger, "");
    ledger.submit(&[batch(2)]);
    socket.get_ref().set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    assert!(socket.read().is_err());
    socket.get_ref().set_read_timeout(Some(READ_TIMEOUT)).unwrap();
    ledger.advance(60);
    assert_eq!([(); 2].map(|()| next_id(&mut socket)), [1, 2].map(|n| id_of(&batch(n))));
}

#[test]
fn late_event_fault_delays_events() {
    let ledger = scabbard(|b| b.fault(Fault::LateEvents(60 * SECOND), When::Next(1)));
    let mut socket = subscribe(&ledger, "");
    ledger.submit(&[batch(1), batch(2)]);
    socket.get_ref().set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    assert!(socket.read().is_err());
    socket.get_ref().set_read_timeout(Some(READ_TIMEOUT)).unwrap();
    ledger.advance(60);
    assert_eq!([(); 2].map(|()| next_id(&mut socket)), [1, 2].map(|n| id_of(&batch(n))));
}

#[test]
fn restart_resets_websockets_and_keeps_events() {
    for ledger in [sawtooth(|b| b), scabbard(|b| b)] {
        ledger.submit(&[batch(1)]);
        let mut socket = subscribe(&ledger, "");
        ledger.restart();
        while let Ok(message) = socket.read() {
            assert!(message.is_text() || message.is_ping(), "{message:?}");
        }
    }
    let ledger = scabbard(|b| b);
    ledger.submit(&[batch(1)]);
    ledger.restart();
    assert_eq!(next_id(&mut subscribe(&ledger, "")), id_of(&batch(1)));
}

#[test]
fn events_continue_from_the_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("record");
    scabbard(|b| b.record_to(&path)).submit(&[batch(1)]);
    let ledger = scabbard(|b| b.record_to(&path));
    assert_eq!(next_id(&mut subscribe(&ledger, "")), id_of(&batch(1)));
}

#[test]
fn sawtooth_sends_blocks_after_a_subscription() {
    let ledger = sawtooth(|b| b.pending_for(SECOND));
    ledger.submit(&[batch(1)]);
    ledger.advance(1);
    ledger.record();
    let mut socket = subscribe(&ledger, "");
    send_json(&mut socket, &json!({ "action": "subscribe", "address_prefixes": [] }));
    let first = next(&mut socket);
    assert_eq!(first["block_num"], "0");
    assert_eq!(first["previous_block_id"], "0000000000000000");
    assert_eq!(first["state_changes"][0]["type"], "SET");
    assert_eq!(first["state_changes"][0]["value"], "AQ==");
    assert_eq!(first["state_changes"][0]["address"].as_str().unwrap().len(), 70);
    ledger.submit(&[batch(2), batch(3)]);
    ledger.advance(1);
    ledger.record();
    let second = next(&mut socket);
    assert_eq!(second["block_num"], "1");
    assert_eq!(second["previous_block_id"], first["block_id"]);
    assert_eq!(second["state_changes"].as_array().unwrap().len(), 2);
    assert!(!second.to_string().contains(&id_of(&batch(2))));
}

#[test]
fn sawtooth_sends_no_event_for_an_invalid_batch() {
    let ledger = sawtooth(|b| b.fault(Fault::Invalid, When::Next(1)));
    let mut socket = subscribe(&ledger, "");
    send_json(&mut socket, &json!({ "action": "subscribe", "address_prefixes": [] }));
    ledger.submit(&[batch(1)]);
    ledger.submit(&[batch(2)]);
    let first = next(&mut socket);
    assert_eq!((&first["block_num"], ledger.applied().len()), (&json!("0"), 1));
    assert_eq!(first["state_changes"].as_array().unwrap().len(), 1);
}

#[test]
fn sawtooth_sends_only_subscribed_addresses() {
    let ledger = sawtooth(|b| b);
    ledger.submit(&[batch(1)]);
    let mut socket = subscribe(&ledger, "");
    send_json(&mut socket, &json!({ "action": "subscribe", "address_prefixes": ["no address"] }));
    assert_eq!(next(&mut socket)["state_changes"], json!([]));
}

#[test]
fn sawtooth_sends_nothing_after_unsubscribing() {
    let ledger = sawtooth(|b| b);
    let mut socket = subscribe(&ledger, "");
    send_json(&mut socket, &json!({ "action": "subscribe" }));
    send_json(&mut socket, &json!({ "action": "unsubscribe" }));
    send_json(&mut socket, &json!({ "action": "dance" }));
    assert_eq!(next(&mut socket), json!({ "error": "Unknown action \"dance\"" }));
    ledger.submit(&[batch(1)]);
    send_json(&mut socket, &json!(7));
    assert_eq!(next(&mut socket), json!({ "error": "Invalid input" }));
    assert_eq!(ledger.send(&Request::get("/subscriptions")).status(), 400);
}

#[test]
fn sawtooth_warns_of_a_crash_and_keeps_the_websocket() {
    let ledger = sawtooth(|b| b);
    let mut socket = subscribe(&ledger, "");
    send_json(&mut socket, &json!({ "action": "subscribe", "address_prefixes": [] }));
    send_json(&mut socket, &json!({ "action": "dance" }));
    assert!(next(&mut socket)["error"].is_string(), "it is subscribed");
    ledger.crash_validator(SECOND);
    assert_eq!(next(&mut socket), json!({ "warning": "Validator unavailable" }));
    ledger.start_validator();
    ledger.submit(&[batch(1)]);
    assert_eq!(next(&mut socket)["block_num"], "0");
}

/// A subscriber of all blocks, with the block that it gets first.
fn subscribe_to_blocks(ledger: &Ledger) -> (Socket, Value) {
    let mut socket = subscribe(ledger, "");
    send_json(&mut socket, &json!({ "action": "subscribe" }));
    let first = next(&mut socket);
    (socket, first)
}

/// The next message is the answer to a ping, so that no block was sent before it.
fn assert_receives_nothing(socket: &mut Socket) {
    socket.send(Message::Ping("no block".into())).unwrap();
    assert_eq!(socket.read().unwrap(), Message::Pong("no block".into()));
}

#[test]
fn sawtooth_subscriber_that_disappears_ends_all_events() {
    let ledger = sawtooth(|b| b.fault(Fault::EventsEndWithClient, When::Always));
    ledger.submit(&[batch(1)]);
    let [(mut stays, _), (mut closes, _), (disappears, _)] =
        [(); 3].map(|()| subscribe_to_blocks(&ledger));
    closes.close(None).unwrap();
    while closes.read().is_ok() {}
    ledger.wait_for_websockets(WebSocketCounts { open: 2, closed: 1, broken: 0 });
    ledger.submit(&[batch(2)]);
    assert_eq!(next(&mut stays)["block_num"], "1");

    drop(disappears);
    ledger.wait_for_websockets(WebSocketCounts { open: 1, closed: 1, broken: 1 });
    ledger.submit(&[batch(3)]);
    assert_receives_nothing(&mut stays);
    let (mut new, stale) = subscribe_to_blocks(&ledger);
    assert_eq!(stale["block_num"], "1");
    ledger.submit(&[batch(4)]);
    assert_receives_nothing(&mut new);

    ledger.restart_interface();
    assert_reset(&mut new);
    let (mut new, latest) = subscribe_to_blocks(&ledger);
    assert_eq!(latest["block_num"], "3");
    ledger.submit(&[batch(5)]);
    assert_eq!(next(&mut new)["block_num"], "4");
}

type Socket = WebSocket<TcpStream>;

fn subscribe(ledger: &Ledger, query: &str) -> Socket {
    try_subscribe(ledger, query).unwrap()
}

/// A websocket, or the status of the refusal.
fn try_subscribe(ledger: &Ledger, query: &str) -> Result<Socket, u16> {
    let path = ledger.event_path();
    let url = format!("ws://{}{path}{query}", ledger.address());
    let mut request = url.into_client_request().unwrap();
    let token = format!("Bearer Cylinder:{}", CylinderToken::new(&key()).as_str());
    request.headers_mut().insert("Authorization", HeaderValue::from_str(&token).unwrap());
    let stream = TcpStream::connect(ledger.address()).unwrap();
    stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
    match client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(HandshakeError::Failure(Error::Http(response))) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

fn send_json(socket: &mut Socket, json: &Value) {
    socket.send(Message::text(json.to_string())).unwrap();
}

fn next(socket: &mut Socket) -> Value {
    match socket.read().unwrap() {
        Message::Text(text) => serde_json::from_str(&text).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn next_id(socket: &mut Socket) -> String {
    next(socket)["id"].as_str().unwrap().to_owned()
}

fn id_of(batch: &Batch) -> String {
    transaction_id(batch).to_string()
}

fn assert_reset(socket: &mut Socket) {
    match socket.read().unwrap_err() {
        Error::Io(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        // The error of tungstenite for a connection that ends without a closing frame.
        Error::Protocol(_) => {}
        other => panic!("{other}"),
    }
}
