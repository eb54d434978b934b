use std::{net::SocketAddr, sync::LazyLock};

use grid_batch_core::queries::BatchFilter;
use proptest::{collection::vec, prelude::*};

use crate::{
    client::{Client, encode_request},
    test_server::{TestServer, batch, body},
};

/// One server for all cases. It must still answer after any input.
static SERVER: LazyLock<TestServer> = LazyLock::new(TestServer::new);

fn address() -> SocketAddr {
    SERVER.address
}

fn still_responds() -> bool {
    SERVER.get("/health").status == 200
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn arbitrary_body_is_refused(bytes in vec(any::<u8>(), 0..400)) {
        let response = SERVER.post("/batches", &bytes);
        let (status, code) = response.error();
        prop_assert!(status == 400 && [30, 34, 35].contains(&code), "{}", response.message());
    }

    #[test]
    fn list_with_a_changed_byte_is_handled(
        position in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut list = body([batch(1)]);
        let position = position.index(list.len());
        list[position] = byte;
        let response = SERVER.post("/batches", &list);
        prop_assert!([202, 400, 409].contains(&response.status), "{}", response.status);
    }

    #[test]
    fn truncated_list_is_refused(end in any::<prop::sample::Index>()) {
        let list = body([batch(2)]);
        let response = SERVER.post("/batches", &list[..end.index(list.len())]);
        prop_assert_eq!(response.status, 400);
    }

    #[test]
    fn arbitrary_query_is_handled(query in "[a-z%=&+,0-9~é/?]{0,40}") {
        for path in ["/batch_statuses", "/batches"] {
            let mut client = Client::connect(address());
            client.send(encode_request("GET", &format!("{path}?id=0&{query}"), &[], b""));
            let status = client.receive().status;
            prop_assert!([400, 405].contains(&status), "{}", status);
        }
    }

    #[test]
    fn arbitrary_json_ids_are_handled(text in "[\\[\\]{}\",:a-f0-9 ]{0,40}") {
        let json = ["content-type: application/json"];
        let response = Client::connect(address()).request("POST", "/batch_statuses", &json, text.as_bytes());
        let (status, code) = response.error();
        prop_assert!(status == 400 && [46, 60].contains(&code), "{} {}", status, code);
    }

    #[test]
    fn arbitrary_bytes_do_not_harm_the_server(bytes in vec(any::<u8>(), 0..200)) {
        let mut client = Client::connect(address());
        client.send(bytes);
        client.close();
        prop_assert!(still_responds());
    }

    #[test]
    fn truncated_request_stores_nothing(end in any::<prop::sample::Index>()) {
        let whole = encode_request("POST", "/batches?service_id=half", &[], &body([batch(3)]));
        let mut client = Client::connect(address());
        client.send(&whole[..end.index(whole.len())]);
        client.close();
        prop_assert!(still_responds());
        let half = BatchFilter { service_id: Some("half".parse().unwrap()), ..BatchFilter::default() };
        prop_assert_eq!(SERVER.store.count(&half).unwrap(), 0);
    }
}

#[test]
fn ambiguous_requests_are_refused() {
    for request in [
        "POST /batches HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
        "POST /batches HTTP/1.1\r\nhost: h\r\ncontent-length: -1\r\n\r\n",
        "POST /batches HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "POST /bat\0ches HTTP/1.1\r\n\r\n",
        "\r\n\r\nHTTP/9.9\r\n\r\n",
    ] {
        let mut client = Client::connect(address());
        client.send(request);
        assert!(client.try_receive().is_none_or(|response| response.status == 400), "{request}");
    }
    assert!(still_responds());
}
