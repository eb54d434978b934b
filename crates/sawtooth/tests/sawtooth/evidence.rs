//! Evidence that a batch was committed, is present, or is absent.

use std::{sync::Arc, time::Duration};

use grid_batch_core::evidence::{Evidence, UnresolvedBatch};
use grid_batch_core::ledger::Ledger;
use grid_batch_core::{BatchError, BatchResult, ManualClock};
use grid_batch_sawtooth::Sawtooth;

use crate::{
    batches::{Nodes, id, sawtooth, unresolved},
    rest_api::{RestApi, answer, recorded, unused_address},
};

async fn find(urls: &[String]) -> BatchResult<Evidence> {
    let reader = sawtooth().with_nodes(Nodes::new(urls));
    reader.find_evidence(&unresolved(&id(1))).await.map(|report| report.evidence)
}

/// The evidence of a node with these responses to the requests for the status and the batch.
async fn evidence_from(status: Vec<u8>, block: Vec<u8>) -> BatchResult<Evidence> {
    let api = RestApi::new([status, block]).await;
    let evidence = find(&[api.url()]).await;
    let lines: Vec<String> = api.requests().into_iter().map(|request| request.line).collect();
    let expected = [format!("GET /batch_statuses?id={}", id(1)), format!("GET /batches/{}", id(1))];
    assert_eq!(lines, expected[..lines.len()]);
    evidence
}

fn response(name: &str) -> Vec<u8> {
    recorded(name, &[("BATCH", &id(1)), ("TRANSACTION", &id(2))])
}

#[tokio::test]
async fn status_is_evidence() {
    for (name, evidence) in [
        ("committed", Evidence::Committed),
        ("pending", Evidence::Present),
        ("invalid", Evidence::Present),
    ] {
        let unused = response("server_error_500");
        assert_eq!(evidence_from(response(name), unused).await, Ok(evidence), "{name}");
    }
}

#[tokio::test]
async fn unknown_batch_in_a_block_is_committed() {
    assert_eq!(
        evidence_from(response("unknown"), response("batch")).await,
        Ok(Evidence::Committed)
    );
}

#[tokio::test]
async fn unknown_batch_in_no_block_is_absent() {
    let evidence = evidence_from(response("unknown"), response("batch_not_found_71")).await;
    assert_eq!(evidence, Ok(Evidence::Absent));
}

#[tokio::test]
async fn invalid_response_is_no_evidence() {
    let other = recorded("batch", &[("BATCH", &id(7))]);
    for block in [
        response("not_found_404"),
        response("unknown_error_10"),
        response("not_ready_15"),
        response("bad_id_60"),
        answer(200, "<html>a page</html>"),
        answer(200, "{}"),
        answer(204, ""),
        other,
        Vec::new(),
    ] {
        let error = evidence_from(response("unknown"), block).await.unwrap_err();
        assert!(!matches!(error, BatchError::InternalError(_)), "{error}");
    }
    for status in [
        response("timed_out_17"),
        answer(200, r#"{"data": []}"#),
        answer(200, "garbage"),
        recorded("unknown", &[("BATCH", &id(7))]),
        Vec::new(),
    ] {
        assert!(evidence_from(status, response("batch_not_found_71")).await.is_err());
    }
}

/// A reader for this node, and a batch of two transactions.
fn find_at(node: &RestApi, clock: &Arc<ManualClock>) -> (Sawtooth, UnresolvedBatch) {
    let reader = sawtooth().with_clock(clock.clone()).with_nodes(Nodes::new([node.url()]));
    let mut batch = unresolved(&id(1));
    batch.transaction_ids = [id(2), id(3)].map(|id| id.parse().unwrap()).to_vec();
    (reader, batch)
}

/// The responses of a node that has the second transaction of a pending batch in its chain.
fn second_is_applied(status_at_last: &str) -> Vec<Vec<u8>> {
    let transaction = |number| {
        let name = if number == 3 { "transaction" } else { "transaction_not_found_72" };
        recorded(name, &[("TRANSACTION", &id(number))])
    };
    let looks = [
        vec![response("pending"), transaction(2), transaction(3), response("pending")],
        vec![response("pending"), transaction(3), response(status_at_last)],
    ];
    looks.concat()
}

#[tokio::test]
async fn applied_transaction_is_evidence_at_the_second_look() {
    let api = RestApi::new(second_is_applied("pending")).await;
    let clock = Arc::new(ManualClock::default());
    let (reader, batch) = find_at(&api, &clock);
    let first = reader.find_evidence(&batch).await.unwrap();
    assert_eq!(first.evidence, Evidence::Present, "it may be in a fork");
    clock.advance(Duration::from_secs(2));
    let second = reader.find_evidence(&batch).await.unwrap();
    assert_eq!(second.evidence, Evidence::NeverApplicable);
    let detail = second.detail.unwrap();
    assert!(detail.contains(&id(3)) && detail.contains(&api.url()), "{detail}");
    let lines: Vec<_> = api.requests().into_iter().map(|request| request.line).collect();
    let [status, two, three] = [
        format!("GET /batch_statuses?id={}", id(1)),
        format!("GET /transactions/{}", id(2)),
        format!("GET /transactions/{}", id(3)),
    ];
    assert_eq!(
        lines.iter().collect::<Vec<_>>(),
        [&status, &two, &three, &status, &status, &three, &status]
    );
}

#[tokio::test]
async fn applied_transaction_needs_two_looks_apart() {
    let api = RestApi::new(second_is_applied("pending")).await;
    let clock = Arc::new(ManualClock::default());
    let (reader, batch) = find_at(&api, &clock);
    for _ in 0..2 {
        assert_eq!(reader.find_evidence(&batch).await.unwrap().evidence, Evidence::Present);
    }
}

#[tokio::test]
async fn batch_that_commits_meanwhile_is_committed() {
    let api = RestApi::new(second_is_applied("committed")).await;
    let clock = Arc::new(ManualClock::default());
    let (reader, batch) = find_at(&api, &clock);
    reader.find_evidence(&batch).await.unwrap();
    clock.advance(Duration::from_secs(2));
    assert_eq!(reader.find_evidence(&batch).await.unwrap().evidence, Evidence::Committed);
}

#[tokio::test]
async fn unusable_response_about_a_transaction_is_no_evidence() {
    for wrong in [
        response("bad_id_60"),
        response("server_error_500"),
        response("batch"),
        recorded("transaction", &[("TRANSACTION", &id(7))]),
        answer(200, "garbage"),
        Vec::new(),
    ] {
        let api = RestApi::new([response("pending"), wrong]).await;
        let (reader, batch) = find_at(&api, &Arc::default());
        assert_eq!(reader.find_evidence(&batch).await.unwrap().evidence, Evidence::Present);
    }
}

#[tokio::test]
async fn every_node_is_queried() {
    let absent = [response("unknown"), response("batch_not_found_71")];
    let nodes = async |last: Vec<u8>| {
        [RestApi::new(absent.clone()).await, RestApi::new([last, absent[1].clone()]).await]
    };
    for (last, evidence) in [
        (response("committed"), Evidence::Committed),
        (response("pending"), Evidence::Present),
        (response("unknown"), Evidence::Absent),
        (response("timed_out_17"), Evidence::Inconclusive),
    ] {
        let apis = nodes(last).await;
        assert_eq!(find(&apis.each_ref().map(RestApi::url)).await, Ok(evidence));
        assert!(apis.iter().all(|api| !api.requests().is_empty()));
    }
}

#[tokio::test]
async fn without_a_reachable_node_there_is_an_error() {
    let node = unused_address().await;
    let error = find(&[node.clone(), node.clone()]).await.unwrap_err();
    assert!(
        matches!(&error, BatchError::Unavailable(reason) if reason.starts_with(&node)),
        "{error}"
    );
    assert!(matches!(find(&[]).await, Err(BatchError::InternalError(_))));
}
