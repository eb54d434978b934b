use std::{
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use grid_batch_api::{ApiOptions, RunningApi};
use grid_batch_core::ShutdownHandle;

use crate::{
    client::{Client, request},
    fixture::{Held, Served, batch, body, id},
};

/// Ends it, and says how long that took.
fn end(api: RunningApi) -> Duration {
    let begun = Instant::now();
    api.wait_for_shutdown().unwrap();
    begun.elapsed()
}

#[test]
fn the_end_hangs_up_on_the_idle_and_accepts_nobody() {
    let served = Served::new();
    let mut silent = served.client();
    let mut idle = served.client();
    assert_eq!(idle.ask("GET", "/health", &[], b"").status, 200);
    assert!(end(served.api) < Duration::from_secs(5));
    assert!(silent.is_hung_up());
    assert!(idle.is_hung_up());
    assert!(TcpStream::connect(served.address).is_err());
}

#[test]
fn a_handle_that_is_dropped_begins_the_end() {
    let served = Served::new();
    let mut idle = served.client();
    assert_eq!(idle.ask("GET", "/health", &[], b"").status, 200);
    drop(served.api);
    assert!(idle.is_hung_up());
}

#[test]
fn what_is_under_way_is_stored_and_answered_at_the_end() {
    let held = Held::new(ApiOptions { queue_limit: 2, ..ApiOptions::default() });
    let mut clients = held.fill();
    let Held { mut served, mut first, release, .. } = held;
    served.api.signal_shutdown().unwrap();
    let ending = thread::spawn(move || end(served.api));
    drop(release);
    first.hear().link();
    let is_stored = |number| !served.store.find(&id(&batch(number))).unwrap().is_empty();
    let mut accepted = 0;
    for (number, client) in (0..).zip(&mut clients) {
        let is_accepted = client.try_hear().is_some_and(|answer| answer.status == 202);
        assert_eq!(is_accepted, is_stored(number));
        accepted += usize::from(is_accepted);
    }
    assert!(accepted >= 2);
    ending.join().unwrap();
}

#[test]
fn what_was_taken_is_stored_though_nobody_waits_for_it_any_more() {
    let drain_limit = Duration::from_secs(1);
    let held = Held::new(ApiOptions { queue_limit: 2, drain_limit, ..ApiOptions::default() });
    let mut clients = held.fill();
    let Held { mut served, mut first, release, .. } = held;
    served.api.signal_shutdown().unwrap();
    let ending = thread::spawn(move || end(served.api));
    // The writer stands still, so these are cut off and not answered.
    assert!(first.is_hung_up());
    let cut_off: Vec<_> = clients.iter_mut().map(Client::is_hung_up).collect();
    drop(release);
    ending.join().unwrap();
    let is_stored = |number| !served.store.find(&id(&batch(number))).unwrap().is_empty();
    let stored: Vec<_> = (0..).zip(&cut_off).filter(|(number, _)| is_stored(*number)).collect();
    assert!(stored.len() >= 2 && stored.iter().all(|(_, cut_off)| **cut_off), "{stored:?}");
}

#[test]
fn the_end_cuts_off_bodies_that_do_not_arrive() {
    let drain_limit = Duration::from_millis(50);
    let served = Served::with_options(ApiOptions { drain_limit, ..ApiOptions::default() });
    let mut client = served.client();
    client.say("POST /batches HTTP/1.1\r\nhost: h\r\ncontent-length: 9\r\n\r\nhalf");
    assert_eq!(served.get("/health").status, 200);
    assert!(end(served.api) < Duration::from_secs(5));
    assert!(client.is_hung_up());
}

#[test]
fn a_client_that_waits_is_answered_at_the_end() {
    let mut served = Served::new();
    served.post("/batches", &body([batch(1)])).link();
    let mut client = served.client();
    let path = format!("/batch_statuses?id={}&wait=60", id(&batch(1)));
    client.say(request("GET", &path, &[], b""));
    assert_eq!(served.get("/health").status, 200);
    let begun = Instant::now();
    served.api.signal_shutdown().unwrap();
    if let Some(answer) = client.try_hear() {
        assert_eq!(answer.statuses(), ["PENDING"]);
    }
    end(served.api);
    assert!(begun.elapsed() < Duration::from_secs(5));
}
