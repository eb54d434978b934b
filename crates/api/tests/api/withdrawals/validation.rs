use super::test_pools::{JSON, server_with_pools};
use crate::{client::Response, test_server::TestServer};
use grid_batch_withdrawals::{WithdrawalFilter, WithdrawalStore};

fn post(server: &TestServer, path: &str, body: &str) -> Response {
    server.client().request("POST", path, &[JSON], body.as_bytes())
}

#[test]
fn invalid_fields_are_refused_with_their_rule() {
    let server = server_with_pools();
    let reward = "/rewards";
    let claim = format!("/rewards/{}/claim", "0".repeat(32));
    for (path, body, code, words) in [
        ("/withdrawals", r#"{}"#, 1023, "invalid pool: it is missing"),
        (
            "/withdrawals",
            r#"{"pool":"x","beneficiary":"member","amount":"1"}"#,
            1023,
            "invalid pool: \"x\" is not a pool",
        ),
        (
            "/withdrawals",
            r#"{"pool":"pool","beneficiary":"x","amount":"1"}"#,
            1023,
            "invalid beneficiary: \"x\"",
        ),
        (
            "/withdrawals",
            r#"{"pool":"pool","beneficiary":"member","amount":5}"#,
            1023,
            "invalid amount: it is a number; it must be a string",
        ),
        (
            "/withdrawals",
            r#"{"pool":"pool","beneficiary":"member","amount":"-5"}"#,
            1023,
            "\"-5\" is not a whole number above 0",
        ),
        (
            "/withdrawals",
            r#"{"pool":"pool","beneficiary":"member"}"#,
            1023,
            "invalid amount: it is missing",
        ),
        ("/withdrawals", r#"{"pool":["pool"]}"#, 1023, "it is an array"),
        ("/withdrawals", r#"{"pool":"pool","to":"member"}"#, 1022, "\"to\""),
        ("/withdrawals", r#"{"pool":"pool1","pool":"pool2"}"#, 1022, "duplicate field \"pool\""),
        ("/withdrawals", "[]", 1022, "expected an object"),
        ("/withdrawals", "", 1022, "JSON object"),
        (
            reward,
            r#"{"pool":"pool","amount":"1","once_per_member":"yes"}"#,
            1023,
            "invalid once_per_member: it is a string; it must be true or false",
        ),
        (reward, r#"{"pool":"pool","amount":1}"#, 1023, "amount"),
        (reward, r#"{"pool":"pool","amount":"1","beneficiary":"member"}"#, 1022, "\"beneficiary\""),
        (&claim, r#"{"beneficiary":"x"}"#, 1023, "\"x\" is not a member"),
        (&claim, r#"{"beneficiary":"member","amount":"5"}"#, 1022, "\"amount\""),
    ] {
        let response = post(&server, path, body);
        assert_eq!(response.error(), (400, code), "{body}");
        assert!(response.message().contains(words), "{body}: {}", response.message());
    }
    let all = server.store.withdrawals(&WithdrawalFilter::default(), None, 9).unwrap().withdrawals;
    assert_eq!(all, []);
}

#[test]
fn web_page_requests_no_withdrawal() {
    let server = server_with_pools();
    let body = br#"{"pool":"pool","beneficiary":"member","amount":"1"}"#;
    for (header, expected) in [
        ("origin: https://evil.example", (403, 1031)),
        ("origin: null", (403, 1031)),
        ("sec-fetch-site: cross-site", (403, 1031)),
        ("sec-fetch-site: same-site", (403, 1031)),
        ("host: evil.example", (421, 1030)),
        ("content-type: text/plain", (415, 1021)),
    ] {
        let response = server.client().request("POST", "/withdrawals", &[header], body);
        assert_eq!(response.error(), expected, "{header}");
    }
    let length = body.len();
    let mut client = server.client();
    client
        .send(format!("POST /withdrawals HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n\r\n"));
    client.send(body);
    assert_eq!(client.receive().error(), (415, 1021), "a body without a type");
    let all = server.store.withdrawals(&WithdrawalFilter::default(), None, 9).unwrap().withdrawals;
    assert_eq!(all, []);
}

#[test]
fn bodies_are_json_of_limited_length() {
    let server = server_with_pools();
    let octets = ["content-type: application/octet-stream"];
    let body = br#"{"pool":"pool","beneficiary":"member","amount":"1"}"#;
    assert_eq!(server.client().request("POST", "/withdrawals", &octets, body).error(), (415, 1021));
    let charset = ["content-type: application/json; charset=utf-8"];
    server.client().request("POST", "/withdrawals", &charset, body).scheduled_id();

    let long = format!("{{\"pool\":\"{}\"}}", "x".repeat(65 * 1024));
    for path in ["/withdrawals", "/rewards"] {
        let refused = post(&server, path, &long);
        assert_eq!(refused.error(), (413, 1003));
        let message = refused.message();
        assert!(message.contains("longer than 65536 bytes"), "{message}");
        assert!(message.contains("with only pool, "), "{message}");
    }
    let retry = format!("/withdrawals/{}/retry", "0".repeat(32));
    let refused = post(&server, &retry, &long);
    assert!(refused.message().ends_with("with only reason, dry_run"), "{}", refused.message());
    let deep = "[".repeat(60_000);
    assert_eq!(post(&server, "/withdrawals", &deep).error(), (400, 1022));
}
