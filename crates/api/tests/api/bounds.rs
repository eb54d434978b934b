use std::time::Duration;

use grid_batch_api::ApiOptions;
use grid_batch_protocol::{BatchBuilder, SigningKey, TransactionBuilder};

use crate::{
    client::request,
    fixture::{Held, Served, batch, body, wait_until},
};

const MIB: usize = 1024 * 1024;

fn announced(length: usize) -> String {
    format!("POST /batches HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n\r\n")
}

const CHUNKED: &str = "POST /batches HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n";

/// So many bytes as one chunk.
fn chunk(length: usize) -> Vec<u8> {
    let mut chunk = format!("{length:x}\r\n").into_bytes();
    chunk.resize(chunk.len() + length, b'x');
    chunk.extend_from_slice(b"\r\n");
    chunk
}

#[test]
fn a_body_that_is_announced_as_too_long_is_refused_before_it_is_sent() {
    let served = Served::new();
    let mut client = served.client();
    client.say(announced(20 * MIB));
    assert_eq!(client.hear().error(), (413, 1003));
}

#[test]
fn a_client_that_asks_whether_to_go_on_is_told_no() {
    let served = Served::new();
    let mut client = served.client();
    client.say(announced(20 * MIB).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n"));
    assert_eq!(client.hear().error(), (413, 1003));

    let list = body([batch(1)]);
    let mut client = served.client();
    client.say(announced(list.len()).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n"));
    assert_eq!(client.hear().status, 100);
    client.say(list);
    client.hear().link();
}

#[test]
fn a_client_that_sends_a_long_body_without_looking_reads_the_refusal_after_it() {
    let served = Served::new();
    let mut client = served.client();
    client.try_say(request("POST", "/batches", &[], &vec![b'x'; 20 * MIB])).unwrap();
    assert_eq!(client.hear().error(), (413, 1003));
}

#[test]
fn a_body_that_becomes_too_long_is_refused_before_it_ends() {
    let served = Served::new();
    let mut client = served.client();
    client.say(CHUNKED);
    for _ in 0..11 {
        client.say(chunk(MIB));
    }
    assert_eq!(client.hear().error(), (413, 1003));
}

#[test]
fn a_body_of_just_the_limit_is_read() {
    let list = body([batch(1)]);
    let served =
        Served::with_options(ApiOptions { body_limit: list.len(), ..ApiOptions::default() });
    served.post("/batches", &list).link();
    assert_eq!(served.post("/batches", &[&list[..], b"x"].concat()).error(), (413, 1003));
}

#[test]
fn a_batch_of_nine_mebibytes_is_taken() {
    let served = Served::new();
    let key = SigningKey::from_seed(7);
    let transaction = TransactionBuilder::new("sabre", "1.0")
        .payload(vec![0; 9 * MIB])
        .sign(&key, &key.public_key());
    let large = BatchBuilder::new().transaction(transaction).sign(&key);
    served.post("/batches", &body([large])).link();
}

#[test]
fn bodies_take_no_more_room_than_there_is_and_give_it_back() {
    let options = ApiOptions { body_limit: MIB, memory_limit: 2 * MIB, ..ApiOptions::default() };
    let served = Served::with_options(options);
    let list = body([batch(1)]);
    let mut halves = Vec::new();
    let refusal = loop {
        let mut half = served.client();
        half.say(CHUNKED);
        half.say(chunk(MIB));
        halves.push(half);
        let answer = served.post("/batches", &list);
        if answer.status != 202 {
            break answer;
        }
    };
    assert_eq!(refusal.error(), (429, 31));
    assert_eq!(served.get("/health").status, 200);
    for client in halves {
        client.hang_up();
    }
    wait_until(|| served.post("/batches", &list).status == 202);
}

#[test]
fn no_more_wait_to_be_stored_than_may_and_then_others_can() {
    let held = Held::new(ApiOptions { queue_limit: 2, ..ApiOptions::default() });
    let mut clients = held.fill();
    let Held { served, mut first, release, .. } = held;
    assert_eq!(served.post("/batches", &body([batch(9)])).error(), (429, 31));
    drop(release);
    first.hear().link();
    let answers = clients.iter_mut().map(|client| client.hear().status);
    assert!(answers.filter(|status| *status == 202).count() >= 2);
    served.post("/batches", &body([batch(9)])).link();
}

#[test]
fn a_body_that_takes_too_long_is_answered() {
    let body_time_limit = Duration::from_millis(100);
    let served = Served::with_options(ApiOptions { body_time_limit, ..ApiOptions::default() });
    let mut client = served.client();
    client.say(announced(100));
    client.say("only a part");
    assert_eq!(client.hear().error(), (408, 1005));
}

#[test]
fn a_connection_that_says_nothing_or_half_a_head_is_closed() {
    let header_limit = Duration::from_millis(100);
    let served = Served::with_options(ApiOptions { header_limit, ..ApiOptions::default() });
    assert!(served.client().is_hung_up());
    let mut client = served.client();
    client.say("POST /batches HTTP/1.1\r\nhost: ");
    assert!(client.is_hung_up());
    let mut client = served.client();
    assert_eq!(client.ask("GET", "/health", &[], b"").status, 200);
    assert!(client.is_hung_up(), "it was idle");
}

#[test]
fn a_connection_that_does_not_read_its_answers_is_closed() {
    let options = ApiOptions {
        answer_limit: Duration::from_millis(100),
        connections: 1,
        ..ApiOptions::default()
    };
    let served = Served::with_options(options);
    let ids = vec!["0".repeat(128); 400].join(",");
    let question = request("GET", &format!("/batch_statuses?id={ids}"), &[], b"");
    let mut deaf = served.client();
    let deafness = std::thread::spawn(move || {
        for _ in 0..500 {
            deaf.say(&question);
        }
        deaf
    });
    // There is one connection only, so this is answered when the other is closed.
    assert_eq!(served.get("/health").status, 200);
    drop(deafness.join());
}

#[test]
fn connections_beyond_the_limit_wait_for_their_turn() {
    let served = Served::with_options(ApiOptions { connections: 1, ..ApiOptions::default() });
    let mut first = served.client();
    assert_eq!(first.ask("GET", "/health", &[], b"").status, 200);
    let mut second = served.client();
    second.say(request("GET", "/health", &[], b""));
    for _ in 0..100 {
        assert_eq!(first.ask("GET", "/health", &[], b"").status, 200);
    }
    assert!(!second.hears_something());
    first.hang_up();
    assert_eq!(second.hear().status, 200);
}

#[test]
fn a_flood_of_headers_is_refused() {
    let served = Served::new();
    let mut many = served.client();
    many.say("GET /health HTTP/1.1\r\nhost: h\r\n");
    many.say("x: y\r\n".repeat(10_000));
    many.say("\r\n");
    assert!(many.try_hear().is_none_or(|answer| answer.status == 431));
    let mut long = served.client();
    long.say(format!("GET /health HTTP/1.1\r\nhost: h\r\nx: {}\r\n\r\n", "y".repeat(MIB)));
    assert!(long.try_hear().is_none_or(|answer| answer.status == 431));
    assert_eq!(served.get("/health").status, 200);
}

#[test]
fn an_address_that_is_too_long_is_refused() {
    let served = Served::new();
    let mut client = served.client();
    client.say(request("GET", &format!("/batch_statuses?id={}", "a".repeat(70_000)), &[], b""));
    assert!(client.try_hear().is_none_or(|answer| answer.status == 414));
    assert_eq!(served.get("/health").status, 200);
}
