//! What was certainly not sent is told from what may have been.

use std::time::Duration;

use grid_batch_core::BatchError;
use grid_batch_http::{Answer, HttpClient, HttpError, HttpOptions};

use crate::server::{Server, client, client_that_waits, nobody, nobody_at_home};

const SHORT: Duration = Duration::from_millis(100);

async fn post(client: &HttpClient, url: &str) -> Result<Answer, HttpError> {
    client.post(url, &[], "a batch").await
}

fn is_not_sent(result: &Result<Answer, HttpError>) -> bool {
    matches!(result, Err(HttpError::NotSent(_)))
}

fn is_no_answer<T>(result: &Result<T, HttpError>) -> bool {
    matches!(result, Err(HttpError::NoAnswer(_)))
}

#[tokio::test]
async fn what_nobody_listens_for_is_not_sent() {
    let result = post(&client(), &format!("http://{}", nobody().await)).await;
    assert!(is_not_sent(&result), "{result:?}");
    assert!(result.unwrap_err().to_string().contains("refused"));
}

#[tokio::test]
async fn what_never_connects_is_not_sent() {
    let (address, _closed) = nobody_at_home().await;
    let options = HttpOptions { connect_limit: SHORT, ..HttpOptions::default() };
    let result = post(&HttpClient::new(&options).unwrap(), &format!("http://{address}")).await;
    assert!(is_not_sent(&result), "{result:?}");
}

#[tokio::test]
async fn a_name_that_nobody_has_is_not_sent_to() {
    let result = post(&client(), "http://nobody.invalid").await;
    assert!(is_not_sent(&result), "{result:?}");
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_was_not_sent_anything() {
    let server = Server::new(|mut peer| async move {
        peer.say(b"no TLS").await;
        peer.stall().await;
    })
    .await;
    let result = post(&client(), &format!("https://{}", server.address)).await;
    assert!(is_not_sent(&result), "{result:?}");
}

#[tokio::test]
async fn a_reset_before_any_answer_leaves_it_open() {
    let server = Server::new(|mut peer| async move {
        peer.request().await;
        peer.reset();
    })
    .await;
    let result = post(&client(), &server.url()).await;
    assert!(is_no_answer(&result), "{result:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_ends_before_its_body_leaves_it_open() {
    for beginning in ["", "HTTP", "HTTP/1.1 202 Accepted\r\nContent-Le", "no HTTP at all\r\n\r\n"] {
        let server = Server::says(beginning).await;
        let result = post(&client(), &server.url()).await;
        assert!(is_no_answer(&result), "{beginning:?}: {result:?}");
    }
}

#[tokio::test]
async fn silence_leaves_it_open() {
    let server = Server::new(|mut peer| async move {
        peer.request().await;
        peer.stall().await;
    })
    .await;
    let result = post(&client_that_waits(SHORT), &server.url()).await;
    assert!(is_no_answer(&result), "{result:?}");
}

#[tokio::test]
async fn a_status_counts_though_the_body_breaks() {
    for broken in [
        "HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n{\"li",
        "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"li\r\n",
        "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n",
    ] {
        let server = Server::says(broken).await;
        let answer = post(&client(), &server.url()).await.unwrap();
        assert_eq!(answer.status, 202);
        assert!(is_no_answer(&answer.body), "{answer:?}");
        assert!(answer.text().starts_with("no whole answer: "), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_status_counts_though_the_body_never_comes() {
    let server = Server::new(|mut peer| async move {
        peer.request().await;
        peer.say(b"HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n").await;
        peer.stall().await;
    })
    .await;
    let limit = Duration::from_secs(1);
    let answer = post(&client_that_waits(limit), &server.url()).await.unwrap();
    assert_eq!(answer.status, 202);
    assert!(is_no_answer(&answer.body), "{answer:?}");
}

#[test]
fn callers_who_follow_batches_are_told_what_they_can_act_on() {
    let of = |error: HttpError| BatchError::from(error);
    assert!(matches!(of(HttpError::NotSent(String::new())), BatchError::Unavailable(_)));
    assert!(matches!(of(HttpError::NoAnswer(String::new())), BatchError::Unavailable(_)));
    assert!(matches!(of(HttpError::Refused { status: 401 }), BatchError::Unavailable(_)));
    assert!(matches!(of(HttpError::Socket(String::new())), BatchError::InvalidAnswer(_)));
    assert!(matches!(of(HttpError::TooLong { limit: 1 }), BatchError::InvalidAnswer(_)));
    assert!(matches!(of(HttpError::Request(String::new())), BatchError::InternalError(_)));
}
