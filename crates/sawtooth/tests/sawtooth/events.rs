//! Event sockets: blocks, warnings, errors and breaks.

use futures_util::{SinkExt, StreamExt};
use grid_batch_core::{
    BatchError, LedgerEvent, LedgerEventStream, LedgerEvents, Outcome, SubmissionSender,
};
use grid_batch_ledger_sim::{Fault, LedgerSim, When};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_tungstenite::{accept_async, tungstenite::Message};

use crate::{
    batches::{SERVICE, batch, sawtooth, submission},
    rest_api::{RestApi, nobody, recorded},
};

const BLOCK: &str = r#"{"block_id":"5a","block_num":"7","state_changes":[]}"#;

fn event() -> LedgerEvent {
    LedgerEvent { transaction_id: None }
}

async fn subscribe(urls: &[String]) -> LedgerEventStream {
    sawtooth().events(urls).subscribe(SERVICE).await.unwrap()
}

async fn commit(ledger: &LedgerSim, number: u32) {
    let answer = sawtooth().sender().send(&ledger.url(), &submission(&batch(number))).await;
    assert_eq!(answer.outcome, Outcome::Accepted);
}

/// The error that comes next and last.
async fn end(mut events: LedgerEventStream) -> BatchError {
    let error = events.next().await.unwrap().unwrap_err();
    assert!(events.next().await.is_none(), "nothing comes after an error");
    error
}

#[tokio::test]
async fn each_block_is_an_event_the_newest_first() {
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
async fn a_socket_that_breaks_ends_and_can_be_opened_again() {
    let ledger = LedgerSim::sawtooth().start().unwrap();
    let events = subscribe(&[ledger.url()]).await;
    ledger.inject(Fault::EventsBroken, When::Next(1));
    commit(&ledger, 1).await;
    let error = end(events).await;
    assert!(matches!(error, BatchError::Unavailable(_)), "{error}");

    let mut events = subscribe(&[ledger.url()]).await;
    assert_eq!(events.next().await, Some(Ok(event())), "the block of the break");
    ledger.restart();
    let error = end(events).await;
    assert!(matches!(error, BatchError::Unavailable(_)), "{error}");
}

#[tokio::test]
async fn the_first_node_that_can_be_reached_is_listened_to() {
    let ledger = LedgerSim::sawtooth().start().unwrap();
    commit(&ledger, 1).await;
    let api = RestApi::new([recorded("not_found_404", &[])]).await;
    let mut events = subscribe(&[nobody().await, api.url(), ledger.url()]).await;
    assert_eq!(events.next().await, Some(Ok(event())));
    assert_eq!(api.requests()[0].line, "GET /subscriptions");
}

#[tokio::test]
async fn a_subscription_that_fails_says_where_and_why() {
    let error = async |urls: &[String]| {
        sawtooth().events(urls).subscribe(SERVICE).await.err().unwrap().to_string()
    };
    let api = RestApi::new([recorded("not_found_404", &[])]).await;
    let expected = format!("{}: the socket was refused with HTTP status 404", api.url());
    assert!(error(&[api.url()]).await.contains(&expected));
    assert!(error(&[nobody().await]).await.contains("not sent"));
    assert!(error(&[]).await.contains("no node"));
}

/// A node that answers the subscription with these texts.
async fn saying(texts: &'static [&'static str]) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let node = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = accept_async(stream).await.unwrap();
        let said = socket.next().await.unwrap().unwrap();
        let expected = r#"{"action":"subscribe","address_prefixes":[]}"#;
        assert_eq!(said, Message::text(expected));
        for text in texts {
            socket.send(Message::text(*text)).await.unwrap();
        }
        // Until the client has gone.
        while let Some(Ok(_)) = socket.next().await {}
    });
    (url, node)
}

#[tokio::test]
async fn a_warning_is_no_event_and_no_end() {
    let (url, _node) = saying(&[r#"{"warning":"Validator unavailable"}"#, BLOCK]).await;
    assert_eq!(subscribe(&[url]).await.next().await, Some(Ok(event())));
}

#[tokio::test]
async fn an_error_and_garbage_end_the_stream() {
    let (url, _node) = saying(&[r#"{"error":"Unknown action \"x\""}"#, BLOCK]).await;
    let error = end(subscribe(&[url]).await).await;
    let expected = "the ledger says: Unknown action \"x\"";
    assert_eq!(error, BatchError::Unavailable(expected.to_owned()));

    let (url, node) = saying(&["[]", BLOCK]).await;
    let error = end(subscribe(&[url]).await).await;
    assert!(matches!(error, BatchError::InvalidAnswer(_)), "{error}");
    node.await.unwrap();
}
