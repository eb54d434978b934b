use std::time::Duration;

use diesel::connection::SimpleConnection;
use grid_batch_core::BatchFilter;

use crate::fixture::{Served, batch, body, id};

#[test]
fn a_store_that_cannot_write_is_said_and_nothing_is_half_stored() {
    let served = Served::with_patience(Duration::from_millis(100), |builder| builder);
    let list = body([batch(1), batch(2)]);
    let lock = served.lock();
    let answer = served.post("/batches", &list);
    assert_eq!(answer.error(), (503, 1012));
    assert!(!answer.message().contains("lock"), "what is behind is no client's business");
    assert_eq!(served.get_status(&id(&batch(1))).statuses(), ["UNKNOWN"]);
    drop(lock);
    served.post("/batches", &list).link();
    assert_eq!(served.store.count(&BatchFilter::default()).unwrap(), 2);
}

#[test]
fn a_store_that_cannot_read_is_said_and_later_answers_again() {
    let served = Served::new();
    served.post("/batches", &body([batch(1)])).link();
    let mut other = served.other();
    other.batch_execute("alter table batches rename to elsewhere").unwrap();
    assert_eq!(served.get_status(&id(&batch(1))).error(), (503, 1013));
    assert_eq!(served.post("/batches", &body([batch(2)])).error(), (503, 1012));
    other.batch_execute("alter table elsewhere rename to batches").unwrap();
    assert_eq!(served.get_status(&id(&batch(1))).statuses(), ["PENDING"]);
    served.post("/batches", &body([batch(2)])).link();
}

#[test]
fn a_composer_that_panics_costs_one_answer_or_none() {
    let served = Served::with(|builder| {
        builder
            .with_service_rule(|service| match service.as_str() {
                "panic" => panic!("as it was told to"),
                _ => Ok(()),
            })
            .with_stored(|_| panic!("as it was told to"))
            .with_health(|| panic!("as it was told to"))
    });
    let mut client = served.client();
    let answer = client.ask("POST", "/batches?service_id=panic", &[], &body([batch(1)]));
    assert_eq!(answer.error(), (500, 1000));
    assert_eq!(client.ask("GET", "/health", &[], b"").error(), (500, 1000));
    client.ask("POST", "/batches", &[], &body([batch(1)])).link();
    client.ask("POST", "/batches", &[], &body([batch(2)])).link();
}
