use std::sync::Arc;

use grid_batch_core::{BatchError, BatchResult, BatchStatusReader, LedgerStatus, StatusReport};
use grid_batch_http::HttpOptions;
use grid_batch_scabbard::{Scabbard, ScabbardOptions, ScabbardStatusReader};
use serde_json::{Value, json};

use crate::{
    batches::{SERVICE, made_up, token},
    fixtures::{fixture, fixture_batch, fixture_transaction},
    node::{Conduct, Node, Request, answer},
    nodes::{Nodes, nobody},
};

fn reader(nodes: Arc<Nodes>) -> ScabbardStatusReader {
    let http = HttpOptions { max_response_bytes: 100_000, ..HttpOptions::default() };
    let options = ScabbardOptions { http, connections: 3, ..ScabbardOptions::default() };
    Scabbard::new(&token(), nodes, options).unwrap().status_reader()
}

async fn ask(nodes: Arc<Nodes>, ids: &[String]) -> BatchResult<Vec<StatusReport>> {
    reader(nodes).get_batch_statuses(SERVICE, ids).await
}

/// What the batch of the fixtures is said to be, by a node that answers with these bytes.
async fn told(bytes: impl Into<Vec<u8>>) -> BatchResult<Vec<StatusReport>> {
    let node = Node::that_says(bytes).await;
    ask(Nodes::at([&node.url]), &[fixture_batch()]).await
}

fn ids_in(request: &Request) -> Vec<String> {
    let (_, ids) = request.line().split_once("?ids=").unwrap();
    ids.split(',').map(ToOwned::to_owned).collect()
}

/// Says Pending of all that it is asked for, in the reverse order.
fn pending(request: &Request) -> Conduct {
    let status = |id: String| -> Value {
        let status = json!({ "statusType": "Pending", "message": [] });
        let timestamp = json!({ "secs_since_epoch": 1, "nanos_since_epoch": 2 });
        json!({ "id": id, "status": status, "timestamp": timestamp })
    };
    let statuses: Vec<_> = ids_in(request).into_iter().rev().map(status).collect();
    Conduct::HttpResponse(answer(200, &json!(statuses).to_string()))
}

#[tokio::test]
async fn every_status_of_a_genuine_node_is_read() {
    for (name, status) in [
        ("unknown", LedgerStatus::NotReported),
        ("pending", LedgerStatus::Pending),
        ("valid", LedgerStatus::Valid),
        ("committed", LedgerStatus::Committed),
    ] {
        let report = StatusReport { batch_id: fixture_batch(), status, receipts: Vec::new() };
        assert_eq!(told(fixture(name)).await, Ok(vec![report]));
    }
    let told = told(fixture("invalid")).await.unwrap().remove(0);
    assert_eq!(told.status, LedgerStatus::Invalid);
    let [receipt] = &told.receipts[..] else { panic!("{told:?}") };
    assert_eq!(receipt.transaction_id.unwrap().to_string(), fixture_transaction());
    assert_eq!(receipt.error_message, "Contract Registry already exists: r1-0");
    assert_eq!(receipt.error_data, [7, 255]);
}

#[tokio::test]
async fn a_question_has_the_token_and_never_a_wait() {
    let node = Node::that_says(fixture("pending")).await;
    ask(Nodes::at([&node.url]), &[fixture_batch()]).await.unwrap();
    let request = node.requests().remove(0);
    let path = "/scabbard/abcDE-F0123/gsAA/batch_statuses";
    assert_eq!(request.line(), format!("GET {path}?ids={}", fixture_batch()));
    let authorization = format!("Bearer Cylinder:{}", token().as_str());
    assert_eq!(request.header("authorization"), Some(&*authorization));
}

#[tokio::test]
async fn a_question_has_up_to_a_hundred_ids_and_each_once() {
    let node = Node::start(pending).await;
    let mut ids: Vec<String> = (0..=249).map(made_up).collect();
    ids.extend_from_within(..50);
    let reports = ask(Nodes::at([&node.url]), &ids).await.unwrap();
    let mut answered: Vec<_> = reports.into_iter().map(|report| report.batch_id).collect();
    answered.sort();
    assert_eq!(answered, (0..=249).map(made_up).collect::<Vec<_>>());
    let counts: Vec<_> = node.requests().iter().map(|request| ids_in(request).len()).collect();
    assert_eq!(counts, [100, 100, 50]);
}

#[tokio::test]
async fn without_ids_nobody_is_asked() {
    assert_eq!(ask(Nodes::at([nobody()]), &[]).await, Ok(Vec::new()));
}

#[tokio::test]
async fn each_batch_is_asked_for_at_the_node_that_took_it() {
    let [first, second] = [Node::start(pending).await, Node::start(pending).await];
    let ids = [made_up(0x00), made_up(0x10), made_up(0xff)];
    let reports = ask(Nodes::at([&first.url, &second.url]), &ids).await.unwrap();
    assert_eq!(reports.len(), 3);
    let asked = |node: &Node| node.requests().iter().flat_map(ids_in).collect::<Vec<_>>();
    assert_eq!(asked(&first), [made_up(0x00), made_up(0xff)]);
    assert_eq!(asked(&second), [made_up(0x10)]);
}

#[tokio::test]
async fn where_a_node_cannot_say_the_next_is_asked() {
    let mut half = fixture("committed");
    half.truncate(half.len() - 20);
    let well = Node::that_says(fixture("committed")).await;
    for first in [
        Node::that_says(fixture("server_error_500")).await,
        Node::that_says(fixture("no_such_service_404")).await,
        Node::that_says(answer(503, "")).await,
        Node::that_says(fixture("busy_429")).await,
        Node::start(|_| Conduct::Break(Vec::new())).await,
        Node::start(move |_| Conduct::Break(half.clone())).await,
    ] {
        let reports = ask(Nodes::at([&first.url, &well.url]), &[fixture_batch()]).await.unwrap();
        assert_eq!(reports[0].status, LedgerStatus::Committed);
        assert_eq!(first.requests().len(), 1);
    }
    let reports = ask(Nodes::at([&nobody(), &well.url]), &[fixture_batch()]).await.unwrap();
    assert_eq!(reports[0].status, LedgerStatus::Committed);
}

#[tokio::test]
async fn when_no_node_can_say_the_first_one_tells_why() {
    let first = Node::that_says(fixture("no_such_service_404")).await;
    let second = Node::that_says(fixture("server_error_500")).await;
    let error = ask(Nodes::at([&first.url, &second.url]), &[fixture_batch()]).await.unwrap_err();
    let words = "404: scabbard service gsZZ on circuit abcDE-F0123 not found";
    assert_eq!(error, BatchError::Unavailable(format!("{}: {words}", first.url)));
}

#[tokio::test]
async fn a_matter_of_configuration_is_told_and_no_other_node_asked() {
    let other = Node::that_says(fixture("committed")).await;
    for (name, words) in [
        ("unauthorized_401", "401: Client is not authorized"),
        ("no_ids_400", "400: No batch IDs specified"),
    ] {
        let node = Node::that_says(fixture(name)).await;
        let error = ask(Nodes::at([&node.url, &other.url]), &[fixture_batch()]).await.unwrap_err();
        let words = format!("{}: the configuration is wrong, {words}", node.url);
        assert_eq!(error, BatchError::InternalError(words));
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_is_told_and_no_other_node_asked() {
    let committed = String::from_utf8(fixture("committed")).unwrap();
    let (_, whole) = committed.split_once("\r\n\r\n").unwrap();
    let other_id = made_up(0xb2);
    let twice = |id: &str, word: &str| {
        let first = whole.trim_end_matches(']');
        let second = whole.trim_start_matches('[').replace(&fixture_batch(), id);
        format!("{first},{}", second.replace("Committed", word))
    };
    let other = Node::that_says(fixture("committed")).await;
    for (body, reason) in [
        (whole[..whole.len() / 2].to_owned(), "no list of statuses: EOF"),
        (String::new(), "no list of statuses: EOF"),
        ("<html>welcome</html>".to_owned(), "no list of statuses: expected value"),
        (format!("{whole}]"), "no list of statuses: trailing characters"),
        (whole.replace("Committed", "Lost"), "unknown variant `Lost`"),
        (whole.replace(&fixture_transaction(), "71"), "the id \"71\" has 2 characters"),
        (whole.replace(&fixture_batch(), &other_id), "nobody asked for the batch \"b2b2"),
        (twice(&other_id, "Committed"), "nobody asked for the batch \"b2b2"),
        (twice(&fixture_batch(), "Valid"), "two things of the batch \"b1b1"),
        (format!("{whole}{}", " ".repeat(100_000)), "longer than 100000 bytes"),
    ] {
        let node = Node::that_says(answer(200, &body)).await;
        let error = ask(Nodes::at([&node.url, &other.url]), &[fixture_batch()]).await.unwrap_err();
        let BatchError::InvalidAnswer(text) = error else { panic!("{reason}: {error}") };
        assert!(text.contains(reason), "{text}");
        assert!(text.starts_with(&node.url), "{text}");
    }
    assert!(other.requests().is_empty());
    assert_eq!(told(answer(200, &twice(&fixture_batch(), "Committed"))).await.unwrap().len(), 1);
    assert_eq!(told(answer(200, "[]")).await, Ok(Vec::new()));
}

#[tokio::test]
async fn of_an_answer_in_parts_all_counts_or_nothing() {
    let node = Node::start(|request| match ids_in(request).len() {
        100 => pending(request),
        _ => Conduct::HttpResponse(answer(200, "[{}]")),
    })
    .await;
    let ids: Vec<String> = (0..=100).map(made_up).collect();
    let error = ask(Nodes::at([&node.url]), &ids).await.unwrap_err();
    assert!(matches!(error, BatchError::InvalidAnswer(_)), "{error}");
    assert_eq!(node.requests().len(), 2);
}

#[tokio::test]
async fn what_cannot_be_asked_is_not_asked() {
    let node = Node::that_says(fixture("committed")).await;
    let reader = reader(Nodes::at([&node.url]));
    for (service, id) in [("global", &*fixture_batch()), (SERVICE, "b1,c1"), (SERVICE, "b1&wait=1")]
    {
        let error = reader.get_batch_statuses(service, &[id.to_owned()]).await.unwrap_err();
        assert!(matches!(error, BatchError::InternalError(_)), "{error}");
    }
    let nowhere = ask(Nodes::at([""; 0]), &[fixture_batch()]).await.unwrap_err();
    let reason = "there is no node to ask about the service abcDE-F0123::gsAA";
    assert_eq!(nowhere, BatchError::InternalError(reason.to_owned()));
    assert!(node.requests().is_empty());
}

#[tokio::test]
async fn no_password_of_an_address_is_in_an_error() {
    let address = nobody().replace("http://", "http://user:secret@");
    let error = ask(Nodes::at([address]), &[fixture_batch()]).await.unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn as_many_questions_may_be_under_way_as_is_said() {
    assert_eq!(reader(Nodes::at([nobody()])).available_connections(), 3);
}
