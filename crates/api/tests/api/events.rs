//! The feed of events over HTTP.

use std::{
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use grid_batch_api::{ApiBuilder, ApiOptions, ShutdownHandle, TrustedProxies};
use grid_batch_core::Timestamp;
use grid_batch_core::batches::BatchState;
use grid_batch_core::events::{
    BatchEvent, EventCursor, EventId, EventKind, EventListener, EventPage, EventPosition,
    EventReadError, PositionedEvent,
};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::mocks::{MockBatchQueryStore, MockEventStore, MockIntakeStore};
use serde_json::{Value, json};

use crate::{
    client::Client,
    test_server::{TestServer, batch, body, id, serve, service, test_hosts, wait_until},
};

fn server() -> TestServer {
    TestServer::with(|builder, store| builder.with_events(store.clone()))
}

fn submit(server: &TestServer, name: &str, number: u64) {
    server.post(&format!("/batches?service_id={name}"), &body([batch(number)])).link();
}

/// Short names of events: batch and kind.
fn told(page: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let data = page["data"].as_array().unwrap();
    data.iter().map(|event| (text(&event["batch_id"]), text(&event["kind"]))).collect()
}

fn accepted(number: u64) -> (String, String) {
    (id(&batch(number)).to_string(), "accepted".to_owned())
}

#[test]
fn page_has_events_in_order_and_the_next_goes_on() {
    let server = server();
    for number in 1..=3 {
        submit(&server, "a::b", number);
    }
    let first = server.get("/v1/events?limit=2").json();
    assert_eq!(told(&first), [accepted(1), accepted(2)]);
    assert_eq!(first["more"], true);
    let next = first["next"].as_str().unwrap();
    let second = server.get(&format!("/v1/events?after={next}")).json();
    assert_eq!((told(&second), &second["more"]), (vec![accepted(3)], &json!(false)));
    let event = &first["data"][0];
    assert_eq!(event["service_id"], "a::b");
    assert_eq!((&event["state"], &event["attempt"]), (&json!("new"), &json!(0)));
    assert_eq!((&event["detail"], &event["instance"]), (&json!(null), &json!(null)));
    assert!(event["at"].as_str().unwrap().ends_with('Z'));
    assert_ne!(event["id"], first["data"][1]["id"]);
}

#[test]
fn page_can_be_limited_to_a_service_and_kinds() {
    let server = server();
    submit(&server, "a::b", 1);
    submit(&server, "a::c", 2);
    let page = server.get("/v1/events?service_id=a::c").json();
    assert_eq!(told(&page), [accepted(2)]);
    assert_eq!(told(&server.get("/v1/events?kind=submitted,held").json()), []);
    assert_eq!(told(&server.get("/v1/events?after=latest").json()), []);
    assert_eq!(told(&server.get("/v1/events?after=oldest").json()).len(), 2);
}

#[test]
fn invalid_requests_are_refused() {
    let server = server();
    for (query, code) in [
        ("limit=0", 1023),
        ("limit=1001", 1023),
        ("kind=finished", 1023),
        ("wait=yes", 1023),
        ("after=", 1080),
        ("after=%20", 1080),
        ("after=e9.1", 1080),
        ("before=1", 1007),
        ("service_id=a%0Ab", 1008),
    ] {
        let response = server.get(&format!("/v1/events?{query}"));
        assert_eq!(response.error(), (400, code), "{query}");
    }
    assert_eq!(server.get("/v1/events/stream?limit=3").error(), (400, 1007));
    assert_eq!(server.get("/v1/events/stream?after=e9.1").error(), (400, 1080));
}

#[test]
fn wait_ends_with_the_next_event() {
    let server = server();
    let latest = server.get("/v1/events?after=latest").json();
    let next = latest["next"].as_str().unwrap();
    let path = format!("/v1/events?after={next}&wait=20");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.get(&path).json());
        submit(&server, "a::b", 1);
        assert_eq!(told(&waiting.join().unwrap()), [accepted(1)]);
    });
    assert_eq!(told(&server.get("/v1/events?after=latest&wait=0").json()), []);
}

#[test]
fn history_of_a_batch_tells_who_took_it() {
    let server = server();
    submit(&server, "a::b", 1);
    server.take_batch_of(service("a::b"));
    let details = server.get(&format!("/v1/batches/{}", id(&batch(1)))).json();
    let history = details["history"].as_array().unwrap();
    let kinds: Vec<_> = history.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["accepted", "submitted"]);
    assert!(history[1]["instance"].is_string(), "{details}");
}

/// Opens a stream, and reads the head of the response.
fn stream(server: &TestServer, path: &str, header: &str) -> Client {
    let mut client = server.client();
    client.send(format!("GET {path} HTTP/1.1\r\nhost: grid.test\r\n{header}\r\n"));
    client
}

fn next_event(client: &mut Client) -> (String, Value) {
    loop {
        let (id, data) = client.next_message().expect("an event");
        if let Some(data) = data {
            return (id, data);
        }
    }
}

#[test]
fn stream_sends_events_as_they_happen_and_resumes() {
    let server = server();
    submit(&server, "a::b", 1);
    let mut client = stream(&server, "/v1/events", "accept: text/event-stream\r\n");
    let (_, none) = client.next_message().unwrap();
    assert_eq!(none, None, "it begins with what happens from now on");
    for number in 2..=4 {
        submit(&server, "a::b", number);
    }
    let number_of = |event: &Value| -> u64 {
        let text = event["batch_id"].as_str().unwrap().to_owned();
        (1..=9).find(|number| id(&batch(*number)).to_string() == text).unwrap()
    };
    let (second, event) = next_event(&mut client);
    assert_eq!(number_of(&event), 2);
    let (_, event) = next_event(&mut client);
    assert_eq!(number_of(&event), 3);
    client.close();

    let resume = format!("last-event-id: {second}\r\n");
    let mut client = stream(&server, "/v1/events/stream?after=oldest", &resume);
    submit(&server, "a::b", 5);
    let events: Vec<u64> = (0..3).map(|_| number_of(&next_event(&mut client).1)).collect();
    assert_eq!(events, [3, 4, 5]);
}

#[test]
fn stream_can_be_limited_to_a_service() {
    let server = server();
    let mut client = stream(&server, "/v1/events/stream?service_id=a::c&after=oldest", "");
    submit(&server, "a::b", 1);
    submit(&server, "a::c", 2);
    let (_, event) = next_event(&mut client);
    assert_eq!(event["service_id"], "a::c");
}

#[test]
fn shutdown_ends_streams_and_waits() {
    let server = server();
    let mut client = stream(&server, "/v1/events/stream", "");
    client.next_message().unwrap();
    thread::scope(|scope| {
        let mut waiting = server.client();
        waiting.send("GET /v1/events?after=latest&wait=60 HTTP/1.1\r\nhost: grid.test\r\n\r\n");
        let ends = scope.spawn(move || client.next_message());
        server.api.wait_for_shutdown().unwrap();
        assert_eq!(ends.join().unwrap(), None);
    });
}

#[test]
fn removed_events_are_gone_with_a_link_to_the_oldest() {
    let mut store = MockEventStore::new();
    store.expect_on_events().return_const(());
    let oldest: EventCursor = "oldest.cursor".parse().unwrap();
    store
        .expect_events()
        .returning(move |_, _, _| Ok(Err(EventReadError::Gone { oldest: oldest.clone() })));
    let (api, address) = mocked(store);
    for path in ["/v1/events?after=e1.5", "/v1/events/stream?after=e1.5"] {
        let response = Client::connect(address).request("GET", path, &[], b"");
        assert_eq!(response.error(), (410, 1081));
        assert_eq!(response.json()["link"], "/v1/events?after=oldest.cursor");
    }
    drop(api);
}

/// Other instances write, too: without a wake-up by this process, the store is asked again.
#[test]
fn stream_polls_and_continues_from_the_cursor_of_each_page() {
    let page = |next: &str| EventPage {
        events: Vec::new(),
        next: next.parse().unwrap(),
        more: next == "c1",
    };
    let mut store = MockEventStore::new();
    store.expect_on_events().return_const(());
    let read = Arc::new(Mutex::new(Vec::new()));
    let positions = Arc::clone(&read);
    store.expect_events().returning(move |from, _, _| {
        let mut positions = positions.lock().unwrap();
        positions.push(from.clone());
        Ok(Ok(page(&format!("c{}", positions.len()))))
    });
    let (api, address) = mocked(store);
    let mut client = Client::connect(address);
    client.send("GET /v1/events/stream HTTP/1.1\r\nhost: grid.test\r\n\r\n");
    assert_eq!(client.next_message(), Some(("c1".to_owned(), None)));
    while read.lock().unwrap().len() < 3 {
        thread::yield_now();
    }
    let after = |text: &str| EventPosition::After(text.parse().unwrap());
    assert_eq!(read.lock().unwrap()[..3], [EventPosition::Latest, after("c1"), after("c2")]);
    drop(api);
}

/// All readers of one address together leave room to others, and those that never read are disconnected.
#[test]
fn readers_that_never_read_leave_room_to_others() {
    let page = EventPage { events: vec![event(); 100], next: "c1".parse().unwrap(), more: true };
    let mut store = MockEventStore::new();
    store.expect_on_events().return_const(());
    store.expect_events().returning(move |_, _, _| Ok(Ok(page.clone())));
    let proxies = TrustedProxies {
        networks: vec!["127.0.0.1".parse().unwrap()],
        ..TrustedProxies::default()
    };
    let options = ApiOptions { write_timeout: Duration::from_secs(3), ..ApiOptions::default() };
    let builder =
        ApiBuilder::new(Arc::new(MockIntakeStore::new()), Arc::new(MockBatchQueryStore::new()));
    let builder = builder.with_options(options).with_trusted_proxies(proxies);
    let (api, server) =
        serve(builder.with_allowed_hosts(test_hosts()).with_events(Arc::new(store)));
    let open = |address: &str| {
        let mut client = Client::connect(server);
        let path = "/v1/events/stream?after=oldest";
        client.send(format!(
            "GET {path} HTTP/1.1\r\nhost: grid.test\r\nx-forwarded-for: {address}\r\n\r\n"
        ));
        client
    };
    // A stream has no length, so that only a refusal is received whole.
    let is_refused = |client: &mut Client| client.try_receive().is_some();
    let mut unread: Vec<Client> = (0..20).map(|_| open("192.0.2.1")).collect();
    assert_eq!(unread.iter_mut().filter_map(Client::try_receive).count(), 4);
    assert!(!is_refused(&mut open("192.0.2.2")));
    wait_until(|| !is_refused(&mut open("192.0.2.1")));
    drop((unread, api));
}

fn event() -> PositionedEvent {
    let event = BatchEvent {
        id: EventId { group: 1, position: 0 },
        service_id: service("a::b"),
        batch_id: id(&batch(1)),
        kind: EventKind::Held,
        state: BatchState::New,
        attempt: 0,
        detail: Some("x".repeat(10_000)),
        at: Timestamp::from_micros(0),
        instance: None,
        withdrawal: None,
        trace: None,
    };
    PositionedEvent { event, cursor: "c1".parse().unwrap() }
}

/// A commit of this process wakes the listeners that it was given.
#[test]
fn store_gets_a_listener_once() {
    let mut store = MockEventStore::new();
    store
        .expect_on_events()
        .times(1)
        .withf(|listener: &EventListener| {
            listener();
            true
        })
        .return_const(());
    drop(mocked(store));
}

fn mocked(store: MockEventStore) -> (grid_batch_api::RunningApi, std::net::SocketAddr) {
    let builder =
        ApiBuilder::new(Arc::new(MockIntakeStore::new()), Arc::new(MockBatchQueryStore::new()));
    serve(builder.with_allowed_hosts(test_hosts()).with_events(Arc::new(store)))
}

#[test]
fn outcome_of_an_attempt_is_told_in_words() {
    let server = server();
    submit(&server, "a::b", 1);
    let taken = server.take_batch_of(service("a::b"));
    let event = grid_batch_core::batches::Event::Outcome { attempt: 1, outcome: Outcome::Busy };
    let change = grid_batch_core::batches::Change {
        error: Some("queue full".to_owned()),
        ..grid_batch_core::batches::Change::new(service("a::b"), taken.batch_id, event)
    };
    server.store.record(&[change]).unwrap();
    let page = server.get("/v1/events?kind=answered").json();
    assert_eq!(page["data"][0]["detail"], "busy: queue full");
    assert_eq!(page["data"][0]["state"], "delayed");
}
