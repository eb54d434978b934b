use std::{net::SocketAddr, sync::LazyLock};

use grid_batch_core::BatchFilter;
use proptest::{collection::vec, prelude::*};

use crate::{
    client::{Client, request},
    fixture::{Served, batch, body},
};

/// One server for all the cases: whatever was sent to it, it must still answer.
static SERVED: LazyLock<Served> = LazyLock::new(Served::new);

fn address() -> SocketAddr {
    SERVED.address
}

fn still_answers() -> bool {
    SERVED.get("/health").status == 200
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_body_of_any_bytes_is_refused(bytes in vec(any::<u8>(), 0..400)) {
        let answer = SERVED.post("/batches", &bytes);
        let (status, code) = answer.error();
        prop_assert!(status == 400 && [30, 34, 35].contains(&code), "{}", answer.message());
    }

    #[test]
    fn a_list_in_which_a_byte_is_wrong_is_refused_or_conflicts_or_is_stored_whole(
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut list = body([batch(1)]);
        let place = place.index(list.len());
        list[place] = byte;
        let answer = SERVED.post("/batches", &list);
        prop_assert!([202, 400, 409].contains(&answer.status), "{}", answer.status);
    }

    #[test]
    fn a_list_that_breaks_off_is_refused(end in any::<prop::sample::Index>()) {
        let list = body([batch(2)]);
        let answer = SERVED.post("/batches", &list[..end.index(list.len())]);
        prop_assert_eq!(answer.status, 400);
    }

    #[test]
    fn a_query_of_any_text_is_answered(query in "[a-z%=&+,0-9~é/?]{0,40}") {
        for path in ["/batch_statuses", "/batches"] {
            let mut client = Client::connect(address());
            client.say(request("GET", &format!("{path}?id=0&{query}"), &[], b""));
            let status = client.hear().status;
            prop_assert!([400, 405].contains(&status), "{}", status);
        }
    }

    #[test]
    fn ids_of_any_json_are_answered(text in "[\\[\\]{}\",:a-f0-9 ]{0,40}") {
        let json = ["content-type: application/json"];
        let answer = Client::connect(address()).ask("POST", "/batch_statuses", &json, text.as_bytes());
        let (status, code) = answer.error();
        prop_assert!(status == 400 && [46, 60].contains(&code), "{} {}", status, code);
    }

    #[test]
    fn a_connection_that_says_anything_harms_nobody(bytes in vec(any::<u8>(), 0..200)) {
        let mut client = Client::connect(address());
        client.say(bytes);
        client.hang_up();
        prop_assert!(still_answers());
    }

    #[test]
    fn a_request_that_stops_half_way_stores_nothing(end in any::<prop::sample::Index>()) {
        let whole = request("POST", "/batches?service_id=half", &[], &body([batch(3)]));
        let mut client = Client::connect(address());
        client.say(&whole[..end.index(whole.len())]);
        client.hang_up();
        prop_assert!(still_answers());
        let half = BatchFilter { service_id: Some("half".parse().unwrap()), ..BatchFilter::default() };
        prop_assert_eq!(SERVED.store.count(&half).unwrap(), 0);
    }
}

#[test]
fn requests_that_could_be_read_in_two_ways_are_refused() {
    for request in [
        "POST /batches HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
        "POST /batches HTTP/1.1\r\nhost: h\r\ncontent-length: -1\r\n\r\n",
        "POST /batches HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "POST /bat\0ches HTTP/1.1\r\n\r\n",
        "\r\n\r\nHTTP/9.9\r\n\r\n",
    ] {
        let mut client = Client::connect(address());
        client.say(request);
        assert!(client.try_hear().is_none_or(|answer| answer.status == 400), "{request}");
    }
    assert!(still_answers());
}
