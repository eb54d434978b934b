use std::sync::Arc;

use grid_batch_core::batches::{LedgerStatus, StatusReport};
use grid_batch_core::ledger::Ledger;
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_http::HttpOptions;
use grid_batch_scabbard::{Scabbard, ScabbardOptions};
use serde_json::{Value, json};

use crate::{
    batches::{SERVICE, arbitrary_id, token},
    fixtures::{fixture, fixture_batch, fixture_transaction},
    node::{Node, Reaction, Request, response},
    nodes::{Nodes, unused_address},
};

fn reader(nodes: Arc<Nodes>) -> Scabbard {
    let http = HttpOptions { max_response_bytes: 100_000, ..HttpOptions::default() };
    let options = ScabbardOptions { http, connections: 3, ..ScabbardOptions::default() };
    Scabbard::new(&token(), nodes, options).unwrap()
}

async fn query(nodes: Arc<Nodes>, ids: &[String]) -> BatchResult<Vec<StatusReport>> {
    reader(nodes).statuses(SERVICE, ids).await
}

/// The status of the fixtures' batch from a node that sends these bytes.
async fn statuses_from(bytes: impl Into<Vec<u8>>) -> BatchResult<Vec<StatusReport>> {
    let node = Node::responding(bytes).await;
    query(Nodes::at([&node.url]), &[fixture_batch()]).await
}

fn ids_in(request: &Request) -> Vec<String> {
    let (_, ids) = request.line().split_once("?ids=").unwrap();
    ids.split(',').map(ToOwned::to_owned).collect()
}

/// Reports all requested batches as Pending, in reverse order.
fn pending(request: &Request) -> Reaction {
    let status = |id: String| -> Value {
        let status = json!({ "statusType": "Pending", "message": [] });
        let timestamp = json!({ "secs_since_epoch": 1, "nanos_since_epoch": 2 });
        json!({ "id": id, "status": status, "timestamp": timestamp })
    };
    let statuses: Vec<_> = ids_in(request).into_iter().rev().map(status).collect();
    Reaction::Respond(response(200, &json!(statuses).to_string()))
}

#[tokio::test]
async fn recorded_statuses_are_parsed() {
    for (name, status) in [
        ("unknown", LedgerStatus::NotReported),
        ("pending", LedgerStatus::Pending),
        ("valid", LedgerStatus::Valid),
        ("committed", LedgerStatus::Committed),
    ] {
        let report = StatusReport { batch_id: fixture_batch(), status, receipts: Vec::new() };
        assert_eq!(statuses_from(fixture(name)).await, Ok(vec![report]));
    }
    let report = statuses_from(fixture("invalid")).await.unwrap().remove(0);
    assert_eq!(report.status, LedgerStatus::Invalid);
    let [receipt] = &report.receipts[..] else { panic!("{report:?}") };
    assert_eq!(receipt.transaction_id.unwrap().to_string(), fixture_transaction());
    assert_eq!(receipt.error_message, "Contract Registry already exists: r1-0");
    assert_eq!(receipt.error_data, [7, 255]);
}

#[tokio::test]
async fn status_request_has_the_token_and_no_wait() {
    let node = Node::responding(fixture("pending")).await;
    query(Nodes::at([&node.url]), &[fixture_batch()]).await.unwrap();
    let request = node.requests().remove(0);
    let path = "/scabbard/abcDE-F0123/gsAA/batch_statuses";
    assert_eq!(request.line(), format!("GET {path}?ids={}", fixture_batch()));
    let authorization = format!("Bearer Cylinder:{}", token().as_str());
    assert_eq!(request.header("authorization"), Some(&*authorization));
}

#[tokio::test]
async fn status_request_has_up_to_100_distinct_ids() {
    let node = Node::start(pending).await;
    let mut ids: Vec<String> = (0..=249).map(arbitrary_id).collect();
    ids.extend_from_within(..50);
    let reports = query(Nodes::at([&node.url]), &ids).await.unwrap();
    let mut answered: Vec<_> = reports.into_iter().map(|report| report.batch_id).collect();
    answered.sort();
    assert_eq!(answered, (0..=249).map(arbitrary_id).collect::<Vec<_>>());
    let counts: Vec<_> = node.requests().iter().map(|request| ids_in(request).len()).collect();
    assert_eq!(counts, [100, 100, 50]);
}

#[tokio::test]
async fn no_request_without_ids() {
    assert_eq!(query(Nodes::at([unused_address()]), &[]).await, Ok(Vec::new()));
}

#[tokio::test]
async fn batch_is_queried_at_the_node_that_accepted_it() {
    let [first, second] = [Node::start(pending).await, Node::start(pending).await];
    let ids = [arbitrary_id(0x00), arbitrary_id(0x10), arbitrary_id(0xff)];
    let reports = query(Nodes::at([&first.url, &second.url]), &ids).await.unwrap();
    assert_eq!(reports.len(), 3);
    let requested = |node: &Node| node.requests().iter().flat_map(ids_in).collect::<Vec<_>>();
    assert_eq!(requested(&first), [arbitrary_id(0x00), arbitrary_id(0xff)]);
    assert_eq!(requested(&second), [arbitrary_id(0x10)]);
}

#[tokio::test]
async fn next_node_is_queried_if_one_is_unavailable() {
    let mut half = fixture("committed");
    half.truncate(half.len() - 20);
    let healthy = Node::responding(fixture("committed")).await;
    for first in [
        Node::responding(fixture("server_error_500")).await,
        Node::responding(fixture("no_such_service_404")).await,
        Node::responding(response(503, "")).await,
        Node::responding(fixture("busy_429")).await,
        Node::start(|_| Reaction::RespondAndClose(Vec::new())).await,
        Node::start(move |_| Reaction::RespondAndClose(half.clone())).await,
    ] {
        let reports =
            query(Nodes::at([&first.url, &healthy.url]), &[fixture_batch()]).await.unwrap();
        assert_eq!(reports[0].status, LedgerStatus::Committed);
        assert_eq!(first.requests().len(), 1);
    }
    let reports =
        query(Nodes::at([&unused_address(), &healthy.url]), &[fixture_batch()]).await.unwrap();
    assert_eq!(reports[0].status, LedgerStatus::Committed);
}

#[tokio::test]
async fn first_error_is_returned_if_all_are_unavailable() {
    let first = Node::responding(fixture("no_such_service_404")).await;
    let second = Node::responding(fixture("server_error_500")).await;
    let error = query(Nodes::at([&first.url, &second.url]), &[fixture_batch()]).await.unwrap_err();
    let message = "HTTP status 404: scabbard service gsZZ on circuit abcDE-F0123 not found";
    assert_eq!(error, BatchError::InvalidAnswer(format!("{}: {message}", first.url)));
}

#[tokio::test]
async fn configuration_error_is_returned_without_failover() {
    let other = Node::responding(fixture("committed")).await;
    for (name, message) in [
        ("unauthorized_401", "401: Client is not authorized"),
        ("no_ids_400", "400: No batch IDs specified"),
    ] {
        let node = Node::responding(fixture(name)).await;
        let error =
            query(Nodes::at([&node.url, &other.url]), &[fixture_batch()]).await.unwrap_err();
        let expected =
            format!("{}: HTTP status {message}; check the configuration of the ledger", node.url);
        assert_eq!(error, BatchError::InternalError(expected));
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn invalid_response_is_an_error_without_failover() {
    let committed = String::from_utf8(fixture("committed")).unwrap();
    let (_, whole) = committed.split_once("\r\n\r\n").unwrap();
    let other_id = arbitrary_id(0xb2);
    let twice = |id: &str, word: &str| {
        let first = whole.trim_end_matches(']');
        let second = whole.trim_start_matches('[').replace(&fixture_batch(), id);
        format!("{first},{}", second.replace("Committed", word))
    };
    let other = Node::responding(fixture("committed")).await;
    for (body, reason) in [
        (whole[..whole.len() / 2].to_owned(), "not a list of statuses: EOF"),
        (String::new(), "not a list of statuses: EOF"),
        ("<html>welcome</html>".to_owned(), "not a list of statuses: expected value"),
        (format!("{whole}]"), "not a list of statuses: trailing characters"),
        (whole.replace("Committed", "Lost"), "unknown variant `Lost`"),
        (whole.replace(&fixture_transaction(), "71"), "the id \"71\" has 2 characters"),
        (whole.replace(&fixture_batch(), &other_id), "batch \"b2b2"),
        (twice(&other_id, "Committed"), "batch \"b2b2"),
        (twice(&fixture_batch(), "Valid"), "has two different entries"),
        (format!("{whole}{}", " ".repeat(100_000)), "longer than 100000 bytes"),
    ] {
        let node = Node::responding(response(200, &body)).await;
        let error =
            query(Nodes::at([&node.url, &other.url]), &[fixture_batch()]).await.unwrap_err();
        let BatchError::InvalidAnswer(text) = error else { panic!("{reason}: {error}") };
        assert!(text.contains(reason), "{text}");
        assert!(text.starts_with(&node.url), "{text}");
    }
    assert!(other.requests().is_empty());
    assert_eq!(
        statuses_from(response(200, &twice(&fixture_batch(), "Committed"))).await.unwrap().len(),
        1
    );
    assert_eq!(statuses_from(response(200, "[]")).await, Ok(Vec::new()));
}

#[tokio::test]
async fn one_invalid_response_fails_the_whole_call() {
    let node = Node::start(|request| match ids_in(request).len() {
        100 => pending(request),
        _ => Reaction::Respond(response(200, "[{}]")),
    })
    .await;
    let ids: Vec<String> = (0..=100).map(arbitrary_id).collect();
    let error = query(Nodes::at([&node.url]), &ids).await.unwrap_err();
    assert!(matches!(error, BatchError::InvalidAnswer(_)), "{error}");
    assert_eq!(node.requests().len(), 2);
}

#[tokio::test]
async fn invalid_service_or_id_is_not_requested() {
    let node = Node::responding(fixture("committed")).await;
    let reader = reader(Nodes::at([&node.url]));
    for (service, id) in [("global", &*fixture_batch()), (SERVICE, "b1,c1"), (SERVICE, "b1&wait=1")]
    {
        let error = reader.statuses(service, &[id.to_owned()]).await.unwrap_err();
        assert!(matches!(error, BatchError::InternalError(_)), "{error}");
    }
    let error = query(Nodes::at([""; 0]), &[fixture_batch()]).await.unwrap_err();
    let reason = "no node is configured for service abcDE-F0123::gsAA";
    assert_eq!(error, BatchError::InternalError(reason.to_owned()));
    assert!(node.requests().is_empty());
}

#[tokio::test]
async fn error_does_not_show_a_password() {
    let address = unused_address().replace("http://", "http://user:secret@");
    let error = query(Nodes::at([address]), &[fixture_batch()]).await.unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn connections_come_from_the_options() {
    assert_eq!(reader(Nodes::at([unused_address()])).connections(), 3);
}
