//! What proves that a batch was applied, is there, or is not.

use grid_batch_core::{BatchError, BatchResult, Evidence, EvidenceReader};

use crate::{
    batches::{Nodes, doubt, id, sawtooth},
    rest_api::{RestApi, answer, nobody, recorded},
};

async fn find(urls: &[String]) -> BatchResult<Evidence> {
    let reader = sawtooth().evidence_reader(Nodes::new(urls));
    reader.find_evidence(&doubt(&id(1))).await
}

/// What is found at a node that says this about the batch and its block.
async fn found(status: Vec<u8>, block: Vec<u8>) -> BatchResult<Evidence> {
    let api = RestApi::new([status, block]).await;
    let found = find(&[api.url()]).await;
    let lines: Vec<String> = api.requests().into_iter().map(|request| request.line).collect();
    let expected = [format!("GET /batch_statuses?id={}", id(1)), format!("GET /batches/{}", id(1))];
    assert_eq!(lines, expected[..lines.len()]);
    found
}

fn about(name: &str) -> Vec<u8> {
    recorded(name, &[("BATCH", &id(1)), ("TRANSACTION", &id(2))])
}

#[tokio::test]
async fn the_status_proves_what_it_says() {
    for (name, evidence) in [
        ("committed", Evidence::Committed),
        ("pending", Evidence::Present),
        ("invalid", Evidence::Present),
    ] {
        let no_matter = about("server_error_500");
        assert_eq!(found(about(name), no_matter).await, Ok(evidence), "{name}");
    }
}

#[tokio::test]
async fn a_batch_of_unknown_status_may_be_in_a_block() {
    assert_eq!(found(about("unknown"), about("batch")).await, Ok(Evidence::Committed));
}

#[tokio::test]
async fn a_batch_that_is_unknown_and_in_no_block_is_absent() {
    let found = found(about("unknown"), about("batch_not_found_71")).await;
    assert_eq!(found, Ok(Evidence::Absent));
}

#[tokio::test]
async fn a_node_that_cannot_be_understood_proves_nothing() {
    let other = recorded("batch", &[("BATCH", &id(7))]);
    for block in [
        about("not_found_404"),
        about("unknown_error_10"),
        about("not_ready_15"),
        about("bad_id_60"),
        answer(200, "<html>a page</html>"),
        answer(200, "{}"),
        answer(204, ""),
        other,
        Vec::new(),
    ] {
        let error = found(about("unknown"), block).await.unwrap_err();
        assert!(!matches!(error, BatchError::InternalError(_)), "{error}");
    }
    for status in [
        about("timed_out_17"),
        answer(200, r#"{"data": []}"#),
        answer(200, "garbage"),
        recorded("unknown", &[("BATCH", &id(7))]),
        Vec::new(),
    ] {
        assert!(found(status, about("batch_not_found_71")).await.is_err());
    }
}

#[tokio::test]
async fn every_node_is_asked() {
    let absent = [about("unknown"), about("batch_not_found_71")];
    let nodes = async |last: Vec<u8>| {
        [RestApi::new(absent.clone()).await, RestApi::new([last, absent[1].clone()]).await]
    };
    for (last, evidence) in [
        (about("committed"), Evidence::Committed),
        (about("pending"), Evidence::Present),
        (about("unknown"), Evidence::Absent),
        (about("timed_out_17"), Evidence::Inconclusive),
    ] {
        let apis = nodes(last).await;
        assert_eq!(find(&apis.each_ref().map(RestApi::url)).await, Ok(evidence));
        assert!(apis.iter().all(|api| !api.requests().is_empty()));
    }
}

#[tokio::test]
async fn where_no_node_can_be_reached_it_is_the_ledger_that_fails() {
    let nobody = nobody().await;
    let error = find(&[nobody.clone(), nobody.clone()]).await.unwrap_err();
    assert!(matches!(&error, BatchError::Unavailable(why) if why.starts_with(&nobody)), "{error}");
    assert!(matches!(find(&[]).await, Err(BatchError::InternalError(_))));
}
