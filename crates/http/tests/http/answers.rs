//! What is read of answers, and what is sent for them.

use std::time::Duration;

use grid_batch_http::{Answer, HttpClient, HttpError, HttpOptions};

use crate::server::{OK, Server, client};

const LIMIT: usize = 100_000;

async fn get(server: &Server) -> Answer {
    let options = HttpOptions { answer_limit: LIMIT, ..HttpOptions::default() };
    HttpClient::new(&options).unwrap().get(&server.url(), &[]).await.unwrap()
}

#[tokio::test]
async fn a_request_goes_out_as_it_was_made() {
    let server = Server::says(OK).await;
    let url = format!("{}/a/path?with=query", server.url());
    let headers = [("content-type", "application/octet-stream"), ("x-one", "1")];
    let answer = client().post(&url, &headers, vec![b'b'; 3]).await.unwrap();
    assert_eq!(answer, Answer { status: 200, retry_after: None, body: Ok(b"ok".to_vec()) });

    let request = server.requests().remove(0);
    assert!(request.head.starts_with("post /a/path?with=query http/1.1\r\n"), "{request:?}");
    for (name, value) in headers {
        assert!(request.head.contains(&format!("\r\n{name}: {value}\r\n")), "{request:?}");
    }
    assert_eq!(request.body, "bbb");
}

#[tokio::test]
async fn a_pause_that_the_other_side_asks_for_is_passed_on() {
    let busy = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n";
    let answer = get(&Server::says(busy).await).await;
    assert_eq!((answer.status, answer.retry_after), (429, Some(Duration::from_secs(7))));
}

#[tokio::test]
async fn no_redirection_is_followed() {
    for status in [301, 302, 307, 308] {
        let server = Server::keeps_saying(OK).await;
        let moved = format!(
            "HTTP/1.1 {status} Moved\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n",
            server.url()
        );
        let answer = client().post(&Server::says(moved).await.url(), &[], "x").await;
        assert!(answer.is_err() || server.requests().is_empty());
        assert_eq!(answer.unwrap().status, status);
    }
}

#[tokio::test]
async fn a_body_may_be_as_long_as_the_limit() {
    for (length, is_read) in [(LIMIT, true), (LIMIT + 1, false)] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let server = Server::says([head.into_bytes(), vec![b'x'; length]].concat()).await;
        let answer = get(&server).await;
        assert_eq!(answer.status, 200);
        match answer.body {
            Ok(body) => assert!(is_read && body.len() == length),
            Err(error) => assert!(!is_read && error == HttpError::TooLong { limit: LIMIT }),
        }
    }
}

#[tokio::test]
async fn a_body_without_end_is_read_up_to_the_limit() {
    for (head, part) in [
        ("Transfer-Encoding: chunked", "4\r\nxxxx\r\n"),
        ("Content-Length: 1000000000000000", "xxxx"),
        ("Connection: close", "xxxx"),
    ] {
        let server = Server::new(move |mut peer| async move {
            peer.request().await;
            peer.say(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes()).await;
            peer.say_for_ever(part.repeat(1000).as_bytes()).await;
        })
        .await;
        assert_eq!(get(&server).await.body, Err(HttpError::TooLong { limit: LIMIT }), "{head}");
    }
}

#[tokio::test]
async fn more_than_was_announced_is_not_read() {
    let server = Server::says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 X").await;
    assert_eq!(get(&server).await.body, Ok(b"ok".to_vec()));
}

#[tokio::test]
async fn headers_without_end_are_no_answer() {
    let server = Server::new(|mut peer| async move {
        peer.request().await;
        peer.say(b"HTTP/1.1 200 OK\r\n").await;
        peer.say_for_ever(b"X-Header: and another\r\n").await;
    })
    .await;
    let result = client().get(&server.url(), &[]).await;
    assert!(matches!(result, Err(HttpError::NoAnswer(_))), "{result:?}");
}
