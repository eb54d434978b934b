//! Subscriptions: blocks, warnings, errors and broken websockets.

use futures_util::{SinkExt, StreamExt};
use grid_batch_core::BatchError;
use grid_batch_core::ledger::{Ledger, LedgerEvent, LedgerEventStream, Outcome};
use grid_batch_ledger_sim::{Fault, LedgerSim, When};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_tungstenite::{accept_async, tungstenite::Message};

use crate::{
    batches::{Nodes, SERVICE, batch, sawtooth, submission},
    rest_api::{RestApi, recorded, unused_address},
};

const BLOCK: &str = r#"{"block_id":"5a","block_num":"7","state_changes":[]}"#;

fn event() -> LedgerEvent {
    LedgerEvent::default()
}

async fn subscribe(urls: &[String]) -> LedgerEventStream {
    sawtooth().with_nodes(Nodes::new(urls)).events(SERVICE).await.unwrap()
}

async fn commit(ledger: &LedgerSim, number: u32) {
    let answer = sawtooth().send(&ledger.url(), &submission(&batch(number))).await;
    assert_eq!(answer.outcome, Outcome::Accepted);
}

/// The error that ends the stream.
async fn final_error(mut events: LedgerEventStream) -> BatchError {
    let error = events.next().await.unwrap().unwrap_err();
    assert!(events.next().await.is_none(), "the stream continues after an error");
    error
}

#[tokio::test]
async fn each_block_is_an_event_starting_with_the_newest() {
    let ledger = LedgerSim::sawtooth().start().unwrap();
    commit(&ledger, 1).await;
    let mut events = subscribe(&[ledger.url()]).await;
    assert_eq!(events.next().await, Some(Ok(event())));
    for number in 2..5 {
        commit(&ledger, number).await;
        assert_eq!(events.next().await, Some(Ok(event())));
    }
}

#[tokio::test]
async fn broken_subscription_ends_and_can_be_renewed() {
    let ledger = LedgerSim::sawtooth().start().unwrap();
    let events = subscribe(&[ledger.url()]).await;
    ledger.inject(Fault::EventsBroken, When::Next(1));
    commit(&ledger, 1).await;
    let error = final_error(events).await;
    assert!(matches!(error, BatchError::Unavailable(_)), "{error}");

    let mut events = subscribe(&[ledger.url()]).await;
    assert_eq!(events.next().await, Some(Ok(event())), "the block that broke the websocket");
    ledger.restart();
    let error = final_error(events).await;
    assert!(matches!(error, BatchError::Unavailable(_)), "{error}");
}

#[tokio::test]
async fn first_reachable_node_is_used() {
    let ledger = LedgerSim::sawtooth().start().unwrap();
    commit(&ledger, 1).await;
    let api = RestApi::new([recorded("not_found_404", &[])]).await;
    let urls = [unused_address().await, api.url(), ledger.url()];
    let source = sawtooth().with_nodes(Nodes::new(urls));
    assert_eq!(source.event_node(SERVICE), None);
    let mut events = source.events(SERVICE).await.unwrap();
    assert_eq!(source.event_node(SERVICE), Some(ledger.url()));
    assert_eq!(events.next().await, Some(Ok(event())));
    assert_eq!(api.requests()[0].line, "GET /subscriptions");
}

#[tokio::test]
async fn failed_subscription_names_node_and_reason() {
    let error = async |urls: &[String]| {
        sawtooth().with_nodes(Nodes::new(urls)).events(SERVICE).await.err().unwrap().to_string()
    };
    let api = RestApi::new([recorded("not_found_404", &[])]).await;
    let expected =
        format!("{}: the websocket handshake was refused with HTTP status 404", api.url());
    assert!(error(&[api.url()]).await.contains(&expected));
    assert!(error(&[unused_address().await]).await.contains("not sent"));
    assert!(error(&[]).await.contains("no node"));
}

/// A node that sends these texts after the subscription.
async fn node_sending(texts: &'static [&'static str]) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let node = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        let received = socket.next().await.unwrap().unwrap();
        let expected = r#"{"action":"subscribe","address_prefixes":[]}"#;
        assert_eq!(received, Message::text(expected));
        for text in texts {
            socket.send(Message::text(*text)).await.unwrap();
        }
        // Until the client disconnects.
        while let Some(Ok(_)) = socket.next().await {}
    });
    (url, node)
}

#[tokio::test]
async fn warning_does_not_end_the_stream() {
    let (url, _node) = node_sending(&[r#"{"warning":"Validator unavailable"}"#, BLOCK]).await;
    assert_eq!(subscribe(&[url]).await.next().await, Some(Ok(event())));
}

#[tokio::test]
async fn error_or_invalid_frame_ends_the_stream() {
    let (url, _node) = node_sending(&[r#"{"error":"Unknown action \"x\""}"#, BLOCK]).await;
    let error = final_error(subscribe(&[url]).await).await;
    let expected = "error from the ledger: Unknown action \"x\"";
    assert_eq!(error, BatchError::Unavailable(expected.to_owned()));

    let (url, node) = node_sending(&["[]", BLOCK]).await;
    let error = final_error(subscribe(&[url]).await).await;
    assert!(matches!(error, BatchError::InvalidAnswer(_)), "{error}");
    node.await.unwrap();
}
