//! Round trips on open websockets.

use std::time::Duration;

use futures_util::{
    FutureExt, SinkExt, StreamExt,
    future::{Either, join, select},
};
use grid_batch_http::WebSocketOptions;
use tokio_tungstenite::{accept_async, tungstenite::Message};

use crate::server::{Server, client};

/// A server that sends two texts and reads what comes until the first text.
async fn server() -> Server {
    Server::new(|peer| async move {
        let mut socket = accept_async(peer.stream).await.unwrap();
        for text in ["one", "two"] {
            socket.send(Message::text(text)).await.unwrap();
        }
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() {
                return;
            }
        }
    })
    .await
}

#[tokio::test]
async fn round_trip_follows_the_texts_before_it() {
    let options = WebSocketOptions::default();
    let mut frames =
        client().open_websocket(&server().await.url(), &[], &[], &options).await.unwrap();
    let probe = frames.probe();
    let mut received = Vec::new();
    for texts in [2, 0] {
        let mut round_trip = Box::pin(probe.round_trip());
        for _ in 0..texts {
            assert_eq!((&mut round_trip).now_or_never(), None, "a text was not read");
            received.push(frames.next().await.unwrap().unwrap());
        }
        match select(round_trip, frames.next()).await {
            Either::Left((answered, _)) => assert!(answered),
            Either::Right((text, _)) => panic!("{text:?}"),
        }
    }
    assert_eq!(received, ["one", "two"]);
}

#[tokio::test]
async fn round_trip_fails_when_the_websocket_ends() {
    let options = WebSocketOptions::default();
    let mut frames =
        client().open_websocket(&server().await.url(), &[], &["end"], &options).await.unwrap();
    let probe = frames.probe();
    let reading = async { while frames.next().await.is_some_and(|text| text.is_ok()) {} };
    let round_trip =
        tokio::time::timeout(Duration::from_secs(20), async { while probe.round_trip().await {} });
    let ((), ended) = join(reading, round_trip).await;
    assert!(ended.is_ok());
}
