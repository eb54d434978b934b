//! Requests as they are sent, and responses as they are read.

use std::time::Duration;

use grid_batch_http::{HttpClient, HttpError, HttpOptions, HttpResponse};
use grid_batch_support::in_trace;

use crate::server::{OK, Server, client};

const LIMIT: usize = 100_000;

async fn get(server: &Server) -> HttpResponse {
    let options = HttpOptions { max_response_bytes: LIMIT, ..HttpOptions::default() };
    HttpClient::new(&options).unwrap().get(&server.url(), &[]).await.unwrap()
}

#[tokio::test]
async fn request_is_sent_with_headers_and_body() {
    let server = Server::responding_once(OK).await;
    let url = format!("{}/a/path?with=query", server.url());
    let headers = [("content-type", "application/octet-stream"), ("x-one", "1")];
    let response = client().post(&url, &headers, vec![b'b'; 3]).await.unwrap();
    assert_eq!(response, HttpResponse { status: 200, retry_after: None, body: Ok(b"ok".to_vec()) });

    let request = server.requests().remove(0);
    assert!(request.head.starts_with("post /a/path?with=query http/1.1\r\n"), "{request:?}");
    for (name, value) in headers {
        assert!(request.head.contains(&format!("\r\n{name}: {value}\r\n")), "{request:?}");
    }
    assert_eq!(request.body, "bbb");
}

#[tokio::test]
async fn retry_after_is_passed_on() {
    let busy = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n";
    let response = get(&Server::responding_once(busy).await).await;
    assert_eq!((response.status, response.retry_after), (429, Some(Duration::from_secs(7))));
}

#[tokio::test]
async fn redirect_is_not_followed() {
    for status in [301, 302, 307, 308] {
        let server = Server::responding(OK).await;
        let moved = format!(
            "HTTP/1.1 {status} Moved\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n",
            server.url()
        );
        let response = client().post(&Server::responding_once(moved).await.url(), &[], "x").await;
        assert!(response.is_err() || server.requests().is_empty());
        assert_eq!(response.unwrap().status, status);
    }
}

#[tokio::test]
async fn body_may_be_as_long_as_the_limit() {
    for (length, is_read) in [(LIMIT, true), (LIMIT + 1, false)] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let server =
            Server::responding_once([head.into_bytes(), vec![b'x'; length]].concat()).await;
        let response = get(&server).await;
        assert_eq!(response.status, 200);
        match response.body {
            Ok(body) => assert!(is_read && body.len() == length),
            Err(error) => assert!(!is_read && error == HttpError::TooLong { limit: LIMIT }),
        }
    }
}

#[tokio::test]
async fn endless_body_is_read_up_to_the_limit() {
    for (head, part) in [
        ("Transfer-Encoding: chunked", "4\r\nxxxx\r\n"),
        ("Content-Length: 1000000000000000", "xxxx"),
        ("Connection: close", "xxxx"),
    ] {
        let server = Server::new(move |mut peer| async move {
            peer.request().await;
            peer.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes()).await;
            peer.send_until_closed(part.repeat(1000).as_bytes()).await;
        })
        .await;
        assert_eq!(get(&server).await.body, Err(HttpError::TooLong { limit: LIMIT }), "{head}");
    }
}

#[tokio::test]
async fn bytes_after_the_content_length_are_not_read() {
    let server =
        Server::responding_once("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 X")
            .await;
    assert_eq!(get(&server).await.body, Ok(b"ok".to_vec()));
}

#[tokio::test]
async fn request_for_a_batch_carries_its_trace() {
    let server = Server::responding_once(OK).await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let trace = format!("{parent} a=1").parse().unwrap();
    let request = client();
    in_trace(Some(&trace), request.get(&server.url(), &[])).await.unwrap();
    let head = server.requests().remove(0).head;
    assert!(head.contains(&format!("\r\ntraceparent: {parent}\r\ntracestate: a=1\r\n")), "{head}");
}

#[tokio::test]
async fn endless_headers_are_an_error() {
    let server = Server::new(|mut peer| async move {
        peer.request().await;
        peer.send(b"HTTP/1.1 200 OK\r\n").await;
        peer.send_until_closed(b"X-Header: and another\r\n").await;
    })
    .await;
    let result = client().get(&server.url(), &[]).await;
    assert!(matches!(result, Err(HttpError::NoResponse(_))), "{result:?}");
}
