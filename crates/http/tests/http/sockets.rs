//! Sockets on which text comes, until they break.

use std::{future::Future, time::Duration};

use futures_util::{SinkExt, StreamExt};
use grid_batch_http::{HttpError, SocketOptions, TextFrames, open_socket};
use tokio::{net::TcpStream, sync::oneshot};
use tokio_tungstenite::{
    WebSocketStream, accept_async,
    tungstenite::{
        Message,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use crate::server::{Server, nobody, nobody_at_home};

type Socket = WebSocketStream<TcpStream>;

const SHORT: Duration = Duration::from_millis(200);

/// A server that does this with each socket.
async fn server<F>(conduct: impl Fn(Socket) -> F + Clone + Send + Sync + 'static) -> Server
where
    F: Future<Output = ()> + Send + 'static,
{
    Server::new(move |peer| {
        let conduct = conduct.clone();
        async move { conduct(accept_async(peer.stream).await.unwrap()).await }
    })
    .await
}

async fn open(server: &Server) -> TextFrames {
    open_socket(&server.url(), &[], &[], &SocketOptions::default()).await.unwrap()
}

/// The error that the stream ends with, after these texts.
async fn end(mut frames: TextFrames, texts: &[&str]) -> HttpError {
    for text in texts {
        assert_eq!(frames.next().await.unwrap().unwrap(), *text);
    }
    let error = frames.next().await.unwrap().unwrap_err();
    assert!(frames.next().await.is_none(), "nothing comes after an error");
    error
}

#[tokio::test]
async fn what_is_said_first_is_heard_and_texts_arrive_in_order() {
    let server = server(|mut socket| async move {
        for _ in 0..2 {
            let said = socket.next().await.unwrap().unwrap();
            socket.send(said).await.unwrap();
        }
        socket.send(Message::text("end")).await.unwrap();
        drop(socket.next().await);
    })
    .await;
    for scheme in ["http", "ws"] {
        let url = format!("{scheme}://{}/a/path", server.address);
        let options = SocketOptions::default();
        let frames = open_socket(&url, &[], &["one", "two"], &options).await.unwrap();
        let texts: Vec<_> = frames.take(3).map(Result::unwrap).collect().await;
        assert_eq!(texts, ["one", "two", "end"]);
    }
}

#[tokio::test]
async fn headers_and_passwords_go_with_the_handshake() {
    let server = Server::new(|mut peer| async move {
        peer.request().await;
        peer.say(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n").await;
    })
    .await;
    let url = format!("ws://user:word@{}/path?query", server.address);
    let opened = open_socket(&url, &[("x-one", "1")], &[], &SocketOptions::default()).await;
    assert_eq!(opened.err().unwrap(), HttpError::Refused { status: 401 });

    let head = server.requests().remove(0).head;
    assert!(head.starts_with("get /path?query http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nx-one: 1\r\n"), "{head}");
    let authorization = "authorization: basic dXNlcjp3b3Jk".to_ascii_lowercase();
    assert!(head.contains(&authorization), "{head}");
    assert!(head.contains(&format!("\r\nhost: {}\r\n", server.address)), "{head}");
}

async fn error_of_opening(url: &str, open_limit: Duration) -> HttpError {
    let options = SocketOptions { open_limit, ..SocketOptions::default() };
    open_socket(url, &[], &[], &options).await.err().unwrap()
}

#[tokio::test]
async fn a_socket_that_does_not_open_in_time_is_a_break() {
    let (address, _closed) = nobody_at_home().await;
    let silent = Server::new(|peer| peer.stall()).await;
    for url in [format!("http://{address}"), silent.url()] {
        let error = error_of_opening(&url, SHORT).await;
        let expected = "the socket did not open within 200ms";
        assert_eq!(error, HttpError::NoAnswer(expected.to_owned()));
    }
}

#[tokio::test]
async fn a_handshake_that_fails_says_how() {
    let open = async |url: &str| error_of_opening(url, Duration::from_secs(10)).await;
    let error = open(&format!("http://{}", nobody().await)).await;
    assert!(matches!(error, HttpError::NotSent(_)), "{error}");

    let error = open(&Server::says("").await.url()).await;
    assert!(matches!(error, HttpError::NoAnswer(_)), "{error}");

    let page = Server::says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(open(&page.url()).await, HttpError::Refused { status: 200 });

    let error = open(&Server::says("garbage\r\n\r\n").await.url()).await;
    assert!(matches!(error, HttpError::Socket(_)), "{error}");

    for url in ["", "nobody", "ftp://h"] {
        let error = open(url).await;
        assert!(matches!(error, HttpError::Request(_)), "{url}: {error}");
    }
}

#[tokio::test]
async fn pings_are_answered() {
    let server = server(|mut socket| async move {
        socket.send(Message::Ping("hello".into())).await.unwrap();
        let answer = socket.next().await.unwrap().unwrap();
        assert_eq!(answer, Message::Pong("hello".into()));
        socket.send(Message::text("thanks")).await.unwrap();
    })
    .await;
    let text = open(&server).await.next().await.unwrap();
    assert_eq!(text.unwrap(), "thanks");
}

#[tokio::test]
async fn a_quiet_side_that_answers_when_asked_lives() {
    let server = server(|mut socket| async move {
        // Reading answers each ping.
        for _ in 0..2 {
            assert!(socket.next().await.unwrap().unwrap().is_ping());
        }
        socket.send(Message::text("at last")).await.unwrap();
    })
    .await;
    let silence_limit = Duration::from_secs(1);
    let options = SocketOptions { silence_limit, ..SocketOptions::default() };
    let mut frames = open_socket(&server.url(), &[], &[], &options).await.unwrap();
    assert_eq!(frames.next().await.unwrap().unwrap(), "at last");
}

#[tokio::test]
async fn silence_is_a_break() {
    let (keep, kept) = oneshot::channel::<()>();
    let kept = std::sync::Arc::new(tokio::sync::Mutex::new(kept));
    let server = server(move |socket| {
        let kept = kept.clone();
        async move {
            let _ = (&mut *kept.lock().await).await;
            drop(socket);
        }
    })
    .await;
    let options = SocketOptions { silence_limit: SHORT, ..SocketOptions::default() };
    let frames = open_socket(&server.url(), &[], &[], &options).await.unwrap();
    assert_eq!(end(frames, &[]).await, HttpError::NoAnswer("nothing came for 200ms".to_owned()));
    drop(keep);
}

#[tokio::test]
async fn a_close_is_a_break_and_says_why() {
    let server = server(|mut socket| async move {
        socket.send(Message::text("one")).await.unwrap();
        let frame = CloseFrame { code: CloseCode::Away, reason: "good night".into() };
        socket.close(Some(frame)).await.unwrap();
    })
    .await;
    let error = end(open(&server).await, &["one"]).await;
    assert!(matches!(&error, HttpError::NoAnswer(text) if text.contains("good night")), "{error}");
}

#[tokio::test]
async fn an_abrupt_end_is_a_break() {
    let server = server(|mut socket| async move {
        socket.send(Message::text("one")).await.unwrap();
    })
    .await;
    let error = end(open(&server).await, &["one"]).await;
    assert!(matches!(error, HttpError::NoAnswer(_)), "{error}");
}

#[tokio::test]
async fn bytes_are_an_error() {
    let server = server(|mut socket| async move {
        socket.send(Message::binary(vec![1])).await.unwrap();
    })
    .await;
    let error = end(open(&server).await, &[]).await;
    assert!(matches!(error, HttpError::Socket(_)), "{error}");
}

#[tokio::test]
async fn a_text_that_is_too_long_is_an_error() {
    let server = server(|mut socket| async move {
        socket.send(Message::text("x".repeat(100))).await.unwrap();
        let _ = socket.send(Message::text("x".repeat(101))).await;
    })
    .await;
    let options = SocketOptions { frame_limit: 100, ..SocketOptions::default() };
    let frames = open_socket(&server.url(), &[], &[], &options).await.unwrap();
    let error = end(frames, &[&"x".repeat(100)]).await;
    assert!(matches!(error, HttpError::Socket(_)), "{error}");
}
