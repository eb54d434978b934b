//! Requests of clients that a node answers.

use futures_util::TryStreamExt;
use grid_batch_core::ledger::{ForwardedRequest, Ledger, PassThroughError};
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_sawtooth::{BasicAuth, Sawtooth, SawtoothOptions};

use crate::{
    batches::Nodes,
    rest_api::{RestApi, answer, unused_address},
};

fn pass_through(nodes: Vec<String>) -> Sawtooth {
    let auth = Some(BasicAuth::new("Aladdin", "open sesame"));
    let options = SawtoothOptions { basic_auth: auth, ..SawtoothOptions::default() };
    Sawtooth::new(options, Nodes::new(nodes)).unwrap()
}

/// Status and body of the answer.
async fn forward(
    nodes: &Sawtooth,
    request: ForwardedRequest,
) -> Result<(u16, String), PassThroughError> {
    let answer = nodes.forward(request).await?;
    let body = answer.body.try_concat().await?;
    Ok((answer.status, String::from_utf8(body).unwrap()))
}

#[test]
fn only_what_reads_is_served() {
    let nodes = pass_through(Vec::new());
    for path in
        ["/batches", "/batches/ab", "/state/1c", "/blocks", "/peers", "/status", "/receipts"]
    {
        assert!(nodes.serves(false, path), "{path}");
    }
    assert!(nodes.serves(true, "/receipts"));
    for path in ["/batches", "/batch_statuses"] {
        assert!(!nodes.serves(true, path), "{path}");
    }
    for path in ["/", "", "/admin", "/batches/", "/batches/..", "/batches/%2e%2e", "/state/a/b"] {
        assert!(!nodes.serves(false, path), "{path}");
    }
}

#[tokio::test]
async fn node_gets_its_own_authorization_and_no_other() {
    let node = RestApi::new([answer(200, "{}")]).await;
    let mut request = ForwardedRequest::get("/state", Some("address=1cf126"));
    request.headers.push(("authorization", "Bearer of-this-server".to_owned()));
    request.headers.push(("x-forwarded-host", "grid.test".to_owned()));
    let nodes = pass_through(vec![node.url()]);
    assert_eq!(forward(&nodes, request).await, Ok((200, "{}".to_owned())));
    let [sent] = &node.requests()[..] else { panic!("one request") };
    assert_eq!(sent.line, "GET /state?address=1cf126");
    let has = |header: &str| sent.headers.iter().any(|it| it == header);
    assert!(has("authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), "{:?}", sent.headers);
    assert!(has("x-forwarded-host: grid.test"), "{:?}", sent.headers);
    assert!(!sent.headers.iter().any(|header| header.contains("of-this-server")));
}

#[tokio::test]
async fn ids_are_posted() {
    let node = RestApi::new([answer(200, "{}")]).await;
    let mut request = ForwardedRequest::get("/receipts", None);
    request.body = Some(b"[\"ab\"]".to_vec());
    request.headers.push(("content-type", "application/json".to_owned()));
    forward(&pass_through(vec![node.url()]), request).await.unwrap();
    let [sent] = &node.requests()[..] else { panic!("one request") };
    assert_eq!((&*sent.line, &*sent.body), ("POST /receipts", &b"[\"ab\"]"[..]));
    assert!(sent.headers.iter().any(|header| header == "content-type: application/json"));
}

#[tokio::test]
async fn second_node_is_asked_if_the_first_does_not_answer() {
    let node = RestApi::new([answer(404, "no")]).await;
    let nodes = pass_through(vec![unused_address().await, node.url()]);
    let request = || ForwardedRequest::get("/state", None);
    for _ in 0..2 {
        assert_eq!(forward(&nodes, request()).await, Ok((404, "no".to_owned())));
    }
    assert_eq!(forward(&pass_through(Vec::new()), request()).await, Err(PassThroughError::NoNode));
    let unreachable = forward(&pass_through(vec![unused_address().await]), request()).await;
    assert!(matches!(unreachable, Err(PassThroughError::Unavailable(_))), "{unreachable:?}");
}

#[tokio::test]
async fn broken_body_is_an_error() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
    let node = RestApi::new([head]).await;
    let nodes = pass_through(vec![node.url()]);
    let broken = forward(&nodes, ForwardedRequest::get("/state", None)).await;
    assert!(matches!(broken, Err(PassThroughError::Unavailable(_))), "{broken:?}");
}

/// Clients follow the links of lists.
#[tokio::test]
async fn links_lead_to_the_host_that_the_client_knows() {
    let ledger = LedgerSim::sawtooth().start().unwrap();
    let mut request = ForwardedRequest::get("/blocks", Some("limit=1"));
    request.headers.push(("x-forwarded-host", "grid.test:80".to_owned()));
    request.headers.push(("x-forwarded-proto", "https".to_owned()));
    let (status, body) = forward(&pass_through(vec![ledger.url()]), request).await.unwrap();
    assert_eq!(status, 200);
    assert!(body.contains(r#""link": "https://grid.test:80/blocks?limit=1""#), "{body}");
}
