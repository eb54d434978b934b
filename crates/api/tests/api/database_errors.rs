use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use diesel::connection::SimpleConnection;
use grid_batch_core::queries::BatchFilter;

use crate::{
    client::encode_request,
    test_server::{TestServer, batch, body, id},
};

#[test]
fn failed_write_is_reported_and_stores_nothing() {
    let server = TestServer::with_lock_timeout(Duration::from_millis(100), |builder, _| builder);
    let list = body([batch(1), batch(2)]);
    let lock = server.lock_database();
    let response = server.post("/batches", &list);
    assert_eq!(response.error(), (503, 1012));
    assert!(!response.message().contains("lock"), "the client must not see the cause");
    assert_eq!(server.get_status(&id(&batch(1))).statuses(), ["UNKNOWN"]);
    drop(lock);
    server.post("/batches", &list).link();
    assert_eq!(server.store.count(&BatchFilter::default()).unwrap(), 2);
}

#[test]
fn requests_are_answered_while_the_database_does_not_answer() {
    let answers = Arc::new(AtomicBool::new(true));
    let observed = Arc::clone(&answers);
    let server = TestServer::with(|builder, _| {
        builder.with_database_check(move || observed.load(Ordering::Relaxed))
    });
    let lock = server.lock_database();
    let mut waiting = server.client();
    waiting.send(encode_request("POST", "/batches", &[], &body([batch(1)])));
    answers.store(false, Ordering::Relaxed);
    assert_eq!(waiting.receive().error(), (503, 1012));
    assert_eq!(server.get_status(&id(&batch(1))).error(), (503, 1012));
    assert_eq!(server.post("/batches", &body([batch(2)])).error(), (503, 1012));
    answers.store(true, Ordering::Relaxed);
    drop(lock);
    server.post("/batches", &body([batch(1)])).link();
    assert!(!server.is_stored(&id(&batch(2))));
}

#[test]
fn failed_read_is_reported_and_later_succeeds() {
    let server = TestServer::new();
    server.post("/batches", &body([batch(1)])).link();
    let mut connection = server.connect_to_database();
    connection.batch_execute("alter table batches rename to renamed").unwrap();
    assert_eq!(server.get_status(&id(&batch(1))).error(), (503, 1013));
    assert_eq!(server.post("/batches", &body([batch(2)])).error(), (503, 1012));
    connection.batch_execute("alter table renamed rename to batches").unwrap();
    assert_eq!(server.get_status(&id(&batch(1))).statuses(), ["PENDING"]);
    server.post("/batches", &body([batch(2)])).link();
}

#[test]
fn panicking_callbacks_fail_at_most_one_request() {
    let server = TestServer::with(|builder, _| {
        builder
            .with_service_rule(|service| match service.as_str() {
                "panic" => panic!("test panic"),
                _ => Ok(()),
            })
            .with_stored_callback(|_| panic!("test panic"))
            .with_health(|| panic!("test panic"))
    });
    let mut client = server.client();
    let response = client.request("POST", "/batches?service_id=panic", &[], &body([batch(1)]));
    assert_eq!(response.error(), (500, 1000));
    assert_eq!(client.request("GET", "/health", &[], b"").error(), (500, 1000));
    client.request("POST", "/batches", &[], &body([batch(1)])).link();
    client.request("POST", "/batches", &[], &body([batch(2)])).link();
}
