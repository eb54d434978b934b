//! Failures: requests that were certainly not sent, and requests that may have been received.

use std::time::Duration;

use grid_batch_core::BatchError;
use grid_batch_http::{HttpClient, HttpError, HttpOptions, HttpResponse};

use tokio::{io::AsyncReadExt, sync::mpsc::unbounded_channel, time::sleep};

use crate::server::{
    OK, Server, address_that_never_accepts, client, client_with_timeout, unused_address,
};

const SHORT: Duration = Duration::from_millis(100);

async fn post(client: &HttpClient, url: &str) -> Result<HttpResponse, HttpError> {
    client.post(url, &[], "a batch").await
}

fn is_not_sent(result: &Result<HttpResponse, HttpError>) -> bool {
    matches!(result, Err(HttpError::NotSent(_)))
}

fn is_timed_out<T>(result: &Result<T, HttpError>) -> bool {
    matches!(result, Err(HttpError::TimedOut(_)))
}

fn is_no_response<T>(result: &Result<T, HttpError>) -> bool {
    matches!(result, Err(HttpError::NoResponse(_)))
}

#[tokio::test]
async fn refused_connection_means_not_sent() {
    let result = post(&client(), &format!("http://{}", unused_address().await)).await;
    assert!(is_not_sent(&result), "{result:?}");
    assert!(result.unwrap_err().to_string().contains("refused"));
}

#[tokio::test]
async fn connect_timeout_means_not_sent() {
    let (address, _closed) = address_that_never_accepts().await;
    let options = HttpOptions { connect_timeout: SHORT, ..HttpOptions::default() };
    let result = post(&HttpClient::new(&options).unwrap(), &format!("http://{address}")).await;
    assert!(is_not_sent(&result), "{result:?}");
}

#[tokio::test]
async fn unknown_host_means_not_sent() {
    let result = post(&client(), "http://unknown.invalid").await;
    assert!(is_not_sent(&result), "{result:?}");
}

#[tokio::test]
async fn failed_tls_handshake_means_not_sent() {
    let server = Server::new(|mut peer| async move {
        peer.send(b"no TLS").await;
        peer.stall().await;
    })
    .await;
    let result = post(&client(), &format!("https://{}", server.address)).await;
    assert!(is_not_sent(&result), "{result:?}");
}

#[tokio::test]
async fn short_time_for_a_request_still_means_not_sent() {
    let (address, _closed) = address_that_never_accepts().await;
    let limit = Duration::from_secs(2);
    let result = post(&client_with_timeout(limit), &format!("http://{address}")).await;
    assert!(is_not_sent(&result), "{result:?}");
}

#[tokio::test]
async fn kept_connection_that_the_node_closed_is_not_used() {
    let (report, mut closed) = unbounded_channel();
    let server = Server::new(move |mut peer| {
        let report = report.clone();
        async move {
            peer.request().await;
            peer.send(OK.as_bytes()).await;
            drop(peer);
            report.send(()).unwrap();
        }
    })
    .await;
    let client = client();
    for number in 1..=20 {
        assert_eq!(post(&client, &server.url()).await.unwrap().status, 200);
        closed.recv().await.unwrap();
        // The runtime looks for ends of connections before it waits for a timer.
        sleep(Duration::from_millis(1)).await;
        assert_eq!((server.connections(), server.requests().len()), (number, number));
    }
}

#[tokio::test]
async fn kept_connection_that_is_reset_means_no_response() {
    let server = Server::new(|mut peer| async move {
        peer.request().await;
        peer.send(OK.as_bytes()).await;
        let _ = peer.stream.read_u8().await;
        peer.reset();
    })
    .await;
    let client = client();
    post(&client, &server.url()).await.unwrap();
    let result = post(&client, &server.url()).await;
    assert!(is_no_response(&result), "{result:?}");
    assert_eq!(server.connections(), 1, "the request was sent again");
}

#[tokio::test]
async fn half_written_body_means_no_response() {
    let server = Server::new(|mut peer| async move {
        let mut read = vec![0; 100_000];
        peer.stream.read_exact(&mut read).await.unwrap();
        peer.reset();
    })
    .await;
    let result = client().post(&server.url(), &[], vec![b'x'; 50_000_000]).await;
    assert!(is_no_response(&result), "{result:?}");
    assert_eq!(server.connections(), 1, "the request was sent again");
}

#[tokio::test]
async fn reset_after_the_last_byte_means_no_response() {
    let server = Server::new(|mut peer| async move {
        peer.request().await;
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n").await;
        peer.reset();
    })
    .await;
    let result = post(&client(), &server.url()).await;
    assert!(is_no_response(&result), "{result:?}");
    assert_eq!((server.connections(), server.requests().len()), (1, 1));
}

#[tokio::test]
async fn tls_that_breaks_off_means_not_sent() {
    let server = Server::new(|mut peer| async move {
        let _ = peer.stream.read_u8().await;
        peer.reset();
    })
    .await;
    let result = post(&client(), &format!("https://{}", server.address)).await;
    assert!(is_not_sent(&result), "{result:?}");
}

#[tokio::test]
async fn reset_before_the_response_means_no_response() {
    let server = Server::new(|mut peer| async move {
        peer.request().await;
        peer.reset();
    })
    .await;
    let result = post(&client(), &server.url()).await;
    assert!(is_no_response(&result), "{result:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn incomplete_head_means_no_response() {
    for beginning in ["", "HTTP", "HTTP/1.1 202 Accepted\r\nContent-Le", "no HTTP at all\r\n\r\n"] {
        let server = Server::responding_once(beginning).await;
        let result = post(&client(), &server.url()).await;
        assert!(is_no_response(&result), "{beginning:?}: {result:?}");
    }
}

#[tokio::test]
async fn request_timeout_means_timed_out() {
    let server = Server::new(|mut peer| async move {
        peer.request().await;
        peer.stall().await;
    })
    .await;
    let result = post(&client_with_timeout(SHORT), &server.url()).await;
    assert!(is_timed_out(&result), "{result:?}");
}

#[tokio::test]
async fn status_is_kept_when_the_body_breaks() {
    for broken in [
        "HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n{\"li",
        "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"li\r\n",
        "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n",
    ] {
        let server = Server::responding_once(broken).await;
        let response = post(&client(), &server.url()).await.unwrap();
        assert_eq!(response.status, 202);
        assert!(is_no_response(&response.body), "{response:?}");
        assert!(response.text().starts_with("no complete response: "), "{}", response.text());
    }
}

#[tokio::test]
async fn status_is_kept_when_the_body_never_comes() {
    let server = Server::new(|mut peer| async move {
        peer.request().await;
        peer.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n").await;
        peer.stall().await;
    })
    .await;
    let limit = Duration::from_secs(1);
    let response = post(&client_with_timeout(limit), &server.url()).await.unwrap();
    assert_eq!(response.status, 202);
    assert!(is_timed_out(&response.body), "{response:?}");
}

#[test]
fn errors_convert_to_batch_errors() {
    let convert = |error: HttpError| BatchError::from(error);
    assert!(matches!(convert(HttpError::NotSent(String::new())), BatchError::Unavailable(_)));
    assert!(matches!(convert(HttpError::NoResponse(String::new())), BatchError::Unavailable(_)));
    assert!(matches!(convert(HttpError::TimedOut(String::new())), BatchError::Unavailable(_)));
    assert!(matches!(convert(HttpError::Refused { status: 401 }), BatchError::Unavailable(_)));
    assert!(matches!(convert(HttpError::InvalidData(String::new())), BatchError::InvalidAnswer(_)));
    assert!(matches!(convert(HttpError::TooLong { limit: 1 }), BatchError::InvalidAnswer(_)));
    assert!(matches!(
        convert(HttpError::InvalidRequest(String::new())),
        BatchError::InternalError(_)
    ));
}
