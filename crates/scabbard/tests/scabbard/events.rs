#![expect(clippy::result_large_err, reason = "so tungstenite refuses a handshake")]

use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use grid_batch_core::{BatchError, LedgerEvents};
use grid_batch_http::HttpOptions;
use grid_batch_ledger_sim::Fault;
use grid_batch_scabbard::{Scabbard, ScabbardEvents, ScabbardOptions};
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
    batches::{SERVICE, made_up, token, transaction_id},
    fixtures::fixture,
    node::Node,
    nodes::{Nodes, nobody},
    world::{World, broken, next},
};

fn events(urls: &[&str]) -> ScabbardEvents {
    let options = ScabbardOptions { http: HttpOptions::default(), ..ScabbardOptions::default() };
    Scabbard::new(&token(), Nodes::at(urls.iter().copied()), options).unwrap().events()
}

/// A node with event sockets.
struct Sockets {
    url: String,
    /// What was asked for: path and query, and the authorization.
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Sockets {
    /// Each socket says these texts and is closed. Whoever names a last event is answered with
    /// `resuming` instead, if there is one.
    async fn saying(texts: &[&str], resuming: Option<StatusCode>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let texts: Vec<_> = texts.iter().map(|text| Message::text(*text)).collect();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shake = |request: &Request, response: Response| {
                    greet(&noted, request, response, resuming)
                };
                let Ok(mut socket) = accept_hdr_async(stream, shake).await else { continue };
                for text in &texts {
                    socket.send(text.clone()).await.unwrap();
                }
                socket.close(None).await.unwrap();
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(target, _)| target.clone()).collect()
    }
}

fn greet(
    noted: &Mutex<Vec<(String, String)>>,
    request: &Request,
    response: Response,
    resuming: Option<StatusCode>,
) -> Result<Response, ErrorResponse> {
    let target = request.uri().to_string();
    let refused = resuming.filter(|_| target.contains('?'));
    let authorization = request.headers()["authorization"].to_str().unwrap().to_owned();
    noted.lock().unwrap().push((target, authorization));
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
async fn every_transaction_is_an_event_and_the_socket_has_the_token() {
    let node = Sockets::saying(&[&frame(&made_up(1)), &frame(&made_up(2))], None).await;
    let mut stream = events(&[&node.url]).subscribe(SERVICE).await.unwrap();
    assert_eq!([next(&mut stream).await, next(&mut stream).await], [1, 2].map(made_up));
    broken(&mut stream).await;
    let authorization = format!("Bearer Cylinder:{}", token().as_str());
    assert_eq!(*node.asked.lock().unwrap(), [(PATH.to_owned(), authorization)]);
}

#[tokio::test]
async fn a_later_socket_goes_on_after_what_was_seen_last() {
    let node = Sockets::saying(&[&frame(&made_up(1)), &frame(&made_up(2))], None).await;
    let events = events(&[&node.url]);
    for _ in 0..2 {
        broken(&mut events.subscribe(SERVICE).await.unwrap()).await;
    }
    broken(&mut events.subscribe("abcDE-F0123::gsBB").await.unwrap()).await;
    let other = PATH.replace("gsAA", "gsBB");
    let resumed = format!("{PATH}?last_seen_event={}", made_up(2));
    assert_eq!(node.asked(), [PATH, &resumed, &other]);
}

#[tokio::test]
async fn a_node_that_does_not_know_the_last_one_is_asked_for_everything() {
    let refusal = Some(StatusCode::INTERNAL_SERVER_ERROR);
    let node = Sockets::saying(&[&frame(&made_up(1))], refusal).await;
    let events = events(&[&node.url]);
    for _ in 0..2 {
        let mut stream = events.subscribe(SERVICE).await.unwrap();
        assert_eq!(next(&mut stream).await, made_up(1));
    }
    let resumed = format!("{PATH}?last_seen_event={}", made_up(1));
    assert_eq!(node.asked(), [PATH, &resumed, PATH]);
}

#[tokio::test]
async fn a_frame_that_is_no_event_breaks_the_stream() {
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
        let node = Sockets::saying(&[garbage, &frame(&made_up(1))], None).await;
        let mut stream = events(&[&node.url]).subscribe(SERVICE).await.unwrap();
        let error = stream.next().await.unwrap().unwrap_err();
        assert!(matches!(error, BatchError::InvalidAnswer(_)), "{garbage}: {error}");
        assert!(stream.next().await.is_none());
    }
}

#[tokio::test]
async fn a_socket_is_opened_at_the_first_node_that_opens_one() {
    let deaf = Node::that_says(fixture("server_error_500")).await;
    let node = Sockets::saying(&[&frame(&made_up(1))], None).await;
    let mut stream = events(&[&nobody(), &deaf.url, &node.url]).subscribe(SERVICE).await.unwrap();
    assert_eq!(next(&mut stream).await, made_up(1));
}

#[tokio::test]
async fn a_socket_that_is_refused_says_so() {
    let node = Node::that_says(fixture("unauthorized_401")).await;
    let error = events(&[&node.url]).subscribe(SERVICE).await.err().unwrap();
    assert!(error.to_string().contains("401"), "{error}");
    let error = events(&[&node.url]).subscribe("global").await.err().unwrap();
    assert!(matches!(error, BatchError::InternalError(_)), "{error}");
}

#[tokio::test]
async fn the_ledger_tells_of_what_it_commits_until_its_socket_breaks() {
    let world = World::new();
    let mut stream = world.listen().await;
    world.send(1).await;
    assert_eq!(next(&mut stream).await, transaction_id(1));
    world.send_into(Fault::EventsBroken, 2).await;
    broken(&mut stream).await;
}
