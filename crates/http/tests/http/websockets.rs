//! Texts over websockets, until they break.

use std::{future::Future, time::Duration};

use futures_util::{SinkExt, StreamExt};
use grid_batch_http::{HttpError, TextFrames, WebSocketOptions};
use tokio::{
    net::TcpStream,
    runtime::Builder,
    sync::{
        mpsc::{UnboundedReceiver, unbounded_channel},
        oneshot,
    },
    task::spawn_blocking,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, accept_async,
    tungstenite::{
        Message,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use crate::server::{Server, address_that_never_accepts, client, unused_address};

type Socket = WebSocketStream<TcpStream>;

const SHORT: Duration = Duration::from_millis(200);

/// A server that handles each websocket with this function.
async fn websocket_server<F>(handle: impl Fn(Socket) -> F + Clone + Send + Sync + 'static) -> Server
where
    F: Future<Output = ()> + Send + 'static,
{
    Server::new(move |peer| {
        let handle = handle.clone();
        async move { handle(accept_async(peer.stream).await.unwrap()).await }
    })
    .await
}

async fn open(server: &Server) -> TextFrames {
    client().open_websocket(&server.url(), &[], &[], &WebSocketOptions::default()).await.unwrap()
}

/// The error that ends the stream after these texts.
async fn error_after(mut frames: TextFrames, texts: &[&str]) -> HttpError {
    for text in texts {
        assert_eq!(frames.next().await.unwrap().unwrap(), *text);
    }
    let error = frames.next().await.unwrap().unwrap_err();
    assert!(frames.next().await.is_none(), "the stream continues after an error");
    error
}

#[tokio::test]
async fn texts_are_sent_and_received_in_order() {
    let server = websocket_server(|mut socket| async move {
        for _ in 0..2 {
            let received = socket.next().await.unwrap().unwrap();
            socket.send(received).await.unwrap();
        }
        socket.send(Message::text("end")).await.unwrap();
        drop(socket.next().await);
    })
    .await;
    for scheme in ["http", "ws"] {
        let url = format!("{scheme}://{}/a/path", server.address);
        let options = WebSocketOptions::default();
        let frames = client().open_websocket(&url, &[], &["one", "two"], &options).await.unwrap();
        let texts: Vec<_> = frames.take(3).map(Result::unwrap).collect().await;
        assert_eq!(texts, ["one", "two", "end"]);
    }
}

#[tokio::test]
async fn handshake_has_headers_and_credentials() {
    let server = Server::new(|mut peer| async move {
        peer.request().await;
        peer.send(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n").await;
    })
    .await;
    let url = format!("ws://user:word@{}/path?query", server.address);
    let opened =
        client().open_websocket(&url, &[("x-one", "1")], &[], &WebSocketOptions::default()).await;
    assert_eq!(opened.err().unwrap(), HttpError::Refused { status: 401 });

    let head = server.requests().remove(0).head;
    assert!(head.starts_with("get /path?query http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nx-one: 1\r\n"), "{head}");
    let authorization = "authorization: basic dXNlcjp3b3Jk".to_ascii_lowercase();
    assert!(head.contains(&authorization), "{head}");
    assert!(head.contains(&format!("\r\nhost: {}\r\n", server.address)), "{head}");
}

async fn open_error(url: &str, open_timeout: Duration) -> HttpError {
    let options = WebSocketOptions { open_timeout, ..WebSocketOptions::default() };
    client().open_websocket(url, &[], &[], &options).await.err().unwrap()
}

#[tokio::test]
async fn open_timeout_means_timed_out() {
    let (address, _closed) = address_that_never_accepts().await;
    let hung = Server::new(|peer| peer.stall()).await;
    for url in [format!("http://{address}"), hung.url()] {
        let error = open_error(&url, SHORT).await;
        let expected = "the websocket did not open within 200ms";
        assert_eq!(error, HttpError::TimedOut(expected.to_owned()));
    }
}

#[tokio::test]
async fn failed_handshake_has_the_matching_error() {
    let open = async |url: &str| open_error(url, Duration::from_secs(10)).await;
    let error = open(&format!("http://{}", unused_address().await)).await;
    assert!(matches!(error, HttpError::NotSent(_)), "{error}");

    let error = open(&Server::responding_once("").await.url()).await;
    assert!(matches!(error, HttpError::NoResponse(_)), "{error}");

    let page = Server::responding_once("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(open(&page.url()).await, HttpError::Refused { status: 200 });

    let error = open(&Server::responding_once("garbage\r\n\r\n").await.url()).await;
    assert!(matches!(error, HttpError::InvalidData(_)), "{error}");

    for url in ["", "ledger", "ftp://h"] {
        let error = open(url).await;
        assert!(matches!(error, HttpError::InvalidRequest(_)), "{url}: {error}");
    }
}

#[tokio::test]
async fn ping_is_answered() {
    let server = websocket_server(|mut socket| async move {
        socket.send(Message::Ping("hello".into())).await.unwrap();
        let response = socket.next().await.unwrap().unwrap();
        assert_eq!(response, Message::Pong("hello".into()));
        socket.send(Message::text("thanks")).await.unwrap();
    })
    .await;
    let text = open(&server).await.next().await.unwrap();
    assert_eq!(text.unwrap(), "thanks");
}

#[tokio::test]
async fn server_that_only_answers_pings_is_kept() {
    let server = websocket_server(|mut socket| async move {
        // Reading answers each ping.
        for _ in 0..2 {
            assert!(socket.next().await.unwrap().unwrap().is_ping());
        }
        socket.send(Message::text("at last")).await.unwrap();
    })
    .await;
    let silence_timeout = Duration::from_secs(1);
    let options = WebSocketOptions { silence_timeout, ..WebSocketOptions::default() };
    let mut frames = client().open_websocket(&server.url(), &[], &[], &options).await.unwrap();
    assert_eq!(frames.next().await.unwrap().unwrap(), "at last");
}

#[tokio::test]
async fn socket_that_receives_nothing_has_no_response() {
    let (keep, kept) = oneshot::channel::<()>();
    let kept = std::sync::Arc::new(tokio::sync::Mutex::new(kept));
    let server = websocket_server(move |socket| {
        let kept = kept.clone();
        async move {
            let _ = (&mut *kept.lock().await).await;
            drop(socket);
        }
    })
    .await;
    let options = WebSocketOptions { silence_timeout: SHORT, ..WebSocketOptions::default() };
    let frames = client().open_websocket(&server.url(), &[], &[], &options).await.unwrap();
    assert_eq!(
        error_after(frames, &[]).await,
        HttpError::NoResponse("nothing received for 200ms".to_owned())
    );
    drop(keep);
}

#[tokio::test]
async fn close_means_no_response_with_its_reason() {
    let server = websocket_server(|mut socket| async move {
        socket.send(Message::text("one")).await.unwrap();
        let frame = CloseFrame { code: CloseCode::Away, reason: "good night".into() };
        socket.close(Some(frame)).await.unwrap();
    })
    .await;
    let error = error_after(open(&server).await, &["one"]).await;
    assert!(
        matches!(&error, HttpError::NoResponse(text) if text.contains("good night")),
        "{error}"
    );
}

#[tokio::test]
async fn abrupt_end_means_no_response() {
    let server = websocket_server(|mut socket| async move {
        socket.send(Message::text("one")).await.unwrap();
    })
    .await;
    let error = error_after(open(&server).await, &["one"]).await;
    assert!(matches!(error, HttpError::NoResponse(_)), "{error}");
}

#[tokio::test]
async fn binary_message_is_an_error() {
    let server = websocket_server(|mut socket| async move {
        socket.send(Message::binary(vec![1])).await.unwrap();
    })
    .await;
    let error = error_after(open(&server).await, &[]).await;
    assert!(matches!(error, HttpError::InvalidData(_)), "{error}");
}

#[tokio::test]
async fn too_long_text_is_an_error() {
    let server = websocket_server(|mut socket| async move {
        socket.send(Message::text("x".repeat(100))).await.unwrap();
        let _ = socket.send(Message::text("x".repeat(101))).await;
    })
    .await;
    let options = WebSocketOptions { max_text_bytes: 100, ..WebSocketOptions::default() };
    let frames = client().open_websocket(&server.url(), &[], &[], &options).await.unwrap();
    let error = error_after(frames, &[&"x".repeat(100)]).await;
    assert!(matches!(error, HttpError::InvalidData(_)), "{error}");
}

/// A server that reports how each websocket ended: with the last message, or with an error.
async fn server_reporting_ends() -> (Server, UnboundedReceiver<Option<Message>>) {
    let (report, ends) = unbounded_channel();
    let server = websocket_server(move |mut socket| {
        let report = report.clone();
        async move {
            let mut last = None;
            while let Some(Ok(message)) = socket.next().await {
                last = Some(message);
            }
            report.send(last).unwrap();
        }
    })
    .await;
    (server, ends)
}

#[tokio::test]
async fn dropped_websocket_sends_a_close_frame() {
    let (server, mut ends) = server_reporting_ends().await;
    drop(open(&server).await);
    assert_eq!(ends.recv().await.unwrap(), Some(Message::Close(None)));

    let mut frames = open(&server).await;
    // Dropped while it waits for a text.
    assert!(timeout(SHORT, frames.next()).await.is_err());
    drop(frames);
    assert_eq!(ends.recv().await.unwrap(), Some(Message::Close(None)));
}

#[tokio::test]
async fn close_frame_is_sent_though_the_runtime_ends() {
    let (server, mut ends) = server_reporting_ends().await;
    let url = server.url();
    let ended = spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (client, options) = (client(), WebSocketOptions::default());
        let frames = runtime.block_on(client.open_websocket(&url, &[], &[], &options)).unwrap();
        // Nothing runs on the runtime after this.
        drop(frames);
    });
    ended.await.unwrap();
    assert_eq!(ends.recv().await.unwrap(), Some(Message::Close(None)));
}
