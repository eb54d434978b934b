use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use grid_batch_core::BatchError;
use grid_batch_core::ledger::Ledger;
use grid_batch_http::HttpOptions;
use grid_batch_ledger_sim::Fault;
use grid_batch_scabbard::{Scabbard, ScabbardOptions};
use tokio::net::TcpListener;
use tokio_tungstenite::{
    accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{ErrorResponse, Request, Response},
        http::StatusCode,
    },
};

use crate::{
    batches::{SERVICE, arbitrary_id, token, transaction_id},
    fixtures::fixture,
    node::Node,
    nodes::{Nodes, unused_address},
    test_ledger::{TestLedger, next, wait_until_broken},
};

fn events(urls: &[&str]) -> Scabbard {
    let options = ScabbardOptions { http: HttpOptions::default(), ..ScabbardOptions::default() };
    Scabbard::new(&token(), Nodes::at(urls.iter().copied()), options).unwrap()
}

/// A node with event websockets.
struct EventNode {
    url: String,
    /// Path and query, and the authorization, of each subscription.
    requested: Arc<Mutex<Vec<(String, String)>>>,
}

impl EventNode {
    /// A node that sends these texts over each websocket and closes it. With `resume_status`, it
    /// refuses subscriptions that name a last event.
    async fn sending(texts: &[&str], resume_status: Option<StatusCode>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requested = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requested);
        let texts: Vec<_> = texts.iter().map(|text| Message::text(*text)).collect();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let callback = |request: &Request, response: Response| {
                    check_handshake(&log, request, response, resume_status)
                };
                let Ok(mut socket) = accept_hdr_async(stream, callback).await else { continue };
                for text in &texts {
                    socket.send(text.clone()).await.unwrap();
                }
                socket.close(None).await.unwrap();
            }
        });
        Self { url, requested }
    }

    fn requested(&self) -> Vec<String> {
        self.requested.lock().unwrap().iter().map(|(target, _)| target.clone()).collect()
    }
}

fn check_handshake(
    log: &Mutex<Vec<(String, String)>>,
    request: &Request,
    response: Response,
    resume_status: Option<StatusCode>,
) -> Result<Response, ErrorResponse> {
    let target = request.uri().to_string();
    let refused = resume_status.filter(|_| target.contains('?'));
    let authorization = request.headers()["authorization"].to_str().unwrap().to_owned();
    log.lock().unwrap().push((target, authorization));
    match refused {
        None => Ok(response),
        Some(status) => {
            let mut refusal = ErrorResponse::new(None);
            *refusal.status_mut() = status;
            Err(refusal)
        }
    }
}

fn frame(id: &str) -> String {
    format!(r#"{{"id":"{id}","state_changes":[{{"Set":{{"key":"00","value":[1]}}}}]}}"#)
}

const PATH: &str = "/scabbard/abcDE-F0123/gsAA/ws/subscribe";

#[tokio::test]
async fn transaction_is_an_event_and_handshake_has_the_token() {
    let node =
        EventNode::sending(&[&frame(&arbitrary_id(1)), &frame(&arbitrary_id(2))], None).await;
    let mut stream = events(&[&node.url]).events(SERVICE).await.unwrap();
    assert_eq!([next(&mut stream).await, next(&mut stream).await], [1, 2].map(arbitrary_id));
    wait_until_broken(&mut stream).await;
    let authorization = format!("Bearer Cylinder:{}", token().as_str());
    assert_eq!(*node.requested.lock().unwrap(), [(PATH.to_owned(), authorization)]);
}

/// The frames of this many transactions.
fn frames(count: u8) -> Vec<String> {
    (0..count).map(|number| frame(&arbitrary_id(number))).collect()
}

async fn node_with_history(count: u8, resume_status: Option<StatusCode>) -> EventNode {
    let frames = frames(count);
    EventNode::sending(&frames.iter().map(String::as_str).collect::<Vec<_>>(), resume_status).await
}

#[tokio::test]
async fn later_subscription_resumes_after_the_last_of_many_events() {
    let node = node_with_history(64, None).await;
    let events = events(&[&node.url]);
    for _ in 0..2 {
        wait_until_broken(&mut events.events(SERVICE).await.unwrap()).await;
    }
    wait_until_broken(&mut events.events("abcDE-F0123::gsBB").await.unwrap()).await;
    let other = PATH.replace("gsAA", "gsBB");
    let resumed = format!("{PATH}?last_seen_event={}", arbitrary_id(63));
    assert_eq!(node.requested(), [PATH, &resumed, &other]);
}

#[tokio::test]
async fn later_subscription_gets_all_of_few_events() {
    let node = node_with_history(63, None).await;
    let events = events(&[&node.url]);
    for _ in 0..2 {
        wait_until_broken(&mut events.events(SERVICE).await.unwrap()).await;
    }
    assert_eq!(node.requested(), [PATH, PATH]);
}

#[tokio::test]
async fn node_without_the_last_event_sends_all_events() {
    let node = node_with_history(64, Some(StatusCode::INTERNAL_SERVER_ERROR)).await;
    let events = events(&[&node.url]);
    for _ in 0..2 {
        let mut stream = events.events(SERVICE).await.unwrap();
        assert_eq!(next(&mut stream).await, arbitrary_id(0));
        wait_until_broken(&mut stream).await;
    }
    let resumed = format!("{PATH}?last_seen_event={}", arbitrary_id(63));
    assert_eq!(node.requested(), [PATH, &resumed, PATH]);
}

#[tokio::test]
async fn invalid_frame_ends_the_stream() {
    for garbage in [
        "",
        "garbage",
        "7",
        "{}",
        r#"{"id":7}"#,
        r#"{"id":""}"#,
        r#"{"id":"b1"}"#,
        &frame(&"B1".repeat(64)),
        r#"{"id":null,"state_changes":[]}"#,
    ] {
        let node = EventNode::sending(&[garbage, &frame(&arbitrary_id(1))], None).await;
        let mut stream = events(&[&node.url]).events(SERVICE).await.unwrap();
        let error = stream.next().await.unwrap().unwrap_err();
        assert!(matches!(error, BatchError::InvalidAnswer(_)), "{garbage}: {error}");
        assert!(stream.next().await.is_none());
    }
}

#[tokio::test]
async fn first_node_that_opens_a_websocket_is_used() {
    let failing = Node::responding(fixture("server_error_500")).await;
    let node = EventNode::sending(&[&frame(&arbitrary_id(1))], None).await;
    let mut stream =
        events(&[&unused_address(), &failing.url, &node.url]).events(SERVICE).await.unwrap();
    assert_eq!(next(&mut stream).await, arbitrary_id(1));
}

#[tokio::test]
async fn refused_subscription_is_an_error() {
    let node = Node::responding(fixture("unauthorized_401")).await;
    let error = events(&[&node.url]).events(SERVICE).await.err().unwrap();
    assert!(error.to_string().contains("401"), "{error}");
    let error = events(&[&node.url]).events("global").await.err().unwrap();
    assert!(matches!(error, BatchError::InternalError(_)), "{error}");
}

#[tokio::test]
async fn commits_are_events_until_the_websocket_breaks() {
    let ledger = TestLedger::new();
    let mut stream = ledger.subscribe().await;
    ledger.send(1).await;
    assert_eq!(next(&mut stream).await, transaction_id(1));
    ledger.send_with_fault(Fault::EventsBroken, 2).await;
    wait_until_broken(&mut stream).await;
}
