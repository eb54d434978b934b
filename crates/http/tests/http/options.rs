//! Headers of the operator, and hosts with other letters than those of ASCII.

use grid_batch_http::{HttpClient, HttpError, HttpHeaders, HttpOptions, WebSocketOptions};

use crate::server::{OK, Server, client, unused_address};

fn with_headers(headers: &str) -> HttpOptions {
    HttpOptions { headers: headers.parse().unwrap(), ..HttpOptions::default() }
}

#[tokio::test]
async fn headers_of_the_options_are_sent_and_not_shown() {
    let options = with_headers("X-Api-Key: pass-word\n\nauthorization: Bearer pass-word\n");
    let server = Server::responding(OK).await;
    let client = HttpClient::new(&options).unwrap();
    client.post(&server.url(), &[], "x").await.unwrap();
    let opened = client.open_websocket(&server.url(), &[], &[], &WebSocketOptions::default()).await;
    assert_eq!(opened.err().unwrap(), HttpError::Refused { status: 200 });
    for request in server.requests() {
        assert!(request.head.contains("\r\nx-api-key: pass-word\r\n"), "{request:?}");
        assert!(request.head.contains("\r\nauthorization: bearer pass-word\r\n"), "{request:?}");
    }
    let error = client.get(&format!("http://{}", unused_address().await), &[]).await.unwrap_err();
    for shown in [format!("{options:?}"), format!("{client:?}"), format!("{error:?} {error}")] {
        assert!(!shown.contains("pass-word"), "{shown}");
    }
    assert!(format!("{options:?}").contains("x-api-key"));
}

#[tokio::test]
async fn headers_of_a_request_replace_those_of_the_options() {
    let server = Server::responding(OK).await;
    let client = HttpClient::new(&with_headers("authorization: Bearer other")).unwrap();
    client.get(&server.url(), &[("authorization", "Bearer own")]).await.unwrap();
    client.get(&format!("http://user:word@{}", server.address), &[]).await.unwrap();
    for (request, expected) in server.requests().iter().zip(["bearer own", "basic "]) {
        assert_eq!(request.head.matches("authorization").count(), 1, "{request:?}");
        assert!(request.head.contains(&format!("authorization: {expected}")), "{request:?}");
    }
}

#[test]
fn invalid_headers_are_refused_without_their_values() {
    for text in ["pass-word", "a b: pass-word", "a: pass-word\u{1}", ": pass-word"] {
        let error = text.parse::<HttpHeaders>().unwrap_err();
        assert!(matches!(error, HttpError::InvalidRequest(_)), "{error}");
        assert!(!error.to_string().contains("pass-word"), "{error}");
    }
}

#[tokio::test]
async fn authorization_of_a_request_replaces_that_of_the_url() {
    let server = Server::responding(OK).await;
    let url = format!("http://user:word@{}", server.address);
    client().get(&url, &[("authorization", "Bearer own")]).await.unwrap();
    let request = server.requests().remove(0);
    assert!(request.head.contains("\r\nauthorization: bearer own\r\n"), "{request:?}");
    assert!(!request.head.contains("basic"), "{request:?}");
}

#[tokio::test]
async fn names_that_no_address_is_allowed_for_are_not_connected_to() {
    let server = Server::responding(OK).await;
    let allows_none = HttpClient::with_allowed_addresses(&HttpOptions::default(), |_| false);
    let allows_none = allows_none.unwrap();
    for host in ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}", server.address.port());
        let error = allows_none.get(&url, &[]).await.unwrap_err();
        let expected = "no address of the host may be connected to";
        assert!(matches!(&error, HttpError::NotSent(text) if text.contains(expected)), "{error}");
    }
    assert_eq!(server.connections(), 0);
}
