//! Status requests: their format, the queried nodes, and the parsed responses.

use std::{collections::HashMap, sync::Arc};

use grid_batch_core::{
    BatchError,
    batches::{
        LedgerStatus::{self, Committed, Invalid, NotReported, Pending},
        Receipt, StatusReport,
    },
    ledger::Ledger,
};
use grid_batch_nodes::StatusUrlResolver;
use grid_batch_sawtooth::Sawtooth;

use crate::{
    batches::{Nodes, SERVICE, id, sawtooth},
    rest_api::{RestApi, answer, recorded, unused_address},
};

fn reader(urls: &[String]) -> Sawtooth {
    sawtooth().with_nodes(Nodes::new(urls))
}

async fn query(url: String, ids: &[String]) -> Result<Vec<StatusReport>, BatchError> {
    reader(&[url]).statuses(SERVICE, ids).await
}

fn report(id: &str, status: LedgerStatus) -> StatusReport {
    StatusReport { batch_id: id.to_owned(), status, receipts: Vec::new() }
}

#[tokio::test]
async fn recorded_statuses_are_parsed() {
    let ids = [id(1)];
    let [id] = &ids;
    for (name, status) in [("committed", Committed), ("pending", Pending), ("unknown", NotReported)]
    {
        let api = RestApi::new([recorded(name, &[("BATCH", id)])]).await;
        assert_eq!(query(api.url(), &ids).await, Ok(vec![report(id, status)]));
        let request = api.requests().remove(0);
        assert_eq!(request.line, format!("GET /batch_statuses?id={id}"));
    }
}

#[tokio::test]
async fn invalid_batch_has_a_receipt_for_each_message() {
    let [batch, transaction] = [1, 2].map(id);
    let values = [("BATCH", &*batch), ("TRANSACTION", &*transaction)];
    let api = RestApi::new([recorded("pending", &values), recorded("invalid", &values)]).await;
    let (reader, ids) = (reader(&[api.url()]), std::slice::from_ref(&batch));
    reader.statuses(SERVICE, ids).await.unwrap();
    let reports = reader.statuses(SERVICE, ids).await.unwrap();
    let receipt = |message: &str, data: &[u8]| Receipt {
        transaction_id: Some(transaction.parse().unwrap()),
        error_message: message.to_owned(),
        error_data: data.to_vec(),
    };
    let receipts = vec![
        receipt("Verb is \"dec\" but name \"a\" not in state", &[]),
        receipt("", &[0, 1, 255]),
    ];
    assert_eq!(reports, [StatusReport { batch_id: batch, status: Invalid, receipts }]);
}

#[tokio::test]
async fn up_to_15_ids_use_get_and_more_use_post() {
    let ids: Vec<String> = (0..16).map(id).collect();
    let values = [("BATCH", &*ids[0]), ("OTHER", &*ids[1])];
    let api = RestApi::new([recorded("statuses_by_post", &values)]).await;
    let expected = Ok(vec![report(&ids[0], Committed), report(&ids[1], NotReported)]);
    assert_eq!(query(api.url(), &ids[..15]).await, expected);
    assert_eq!(query(api.url(), &ids).await, expected);

    let requests = api.requests();
    assert_eq!(requests[0].line, format!("GET /batch_statuses?id={}", ids[..15].join(",")));
    assert_eq!(requests[1].line, "POST /batch_statuses");
    assert!(requests[1].headers.contains(&"content-type: application/json".to_owned()));
    assert_eq!(serde_json::from_slice::<Vec<String>>(&requests[1].body).unwrap(), ids);
}

#[tokio::test]
async fn many_ids_are_split_into_requests() {
    let ids: Vec<String> = (0..1_001).map(id).collect();
    let api = RestApi::new([answer(200, r#"{"data": []}"#)]).await;
    assert_eq!(query(api.url(), &ids).await, Ok(Vec::new()));
    let lines: Vec<String> = api.requests().into_iter().map(|request| request.line).collect();
    let get = format!("GET /batch_statuses?id={}", ids[1_000]);
    assert_eq!(lines, ["POST /batch_statuses", "POST /batch_statuses", &get]);
}

#[tokio::test]
async fn no_request_without_ids() {
    assert_eq!(query(unused_address().await, &[]).await, Ok(Vec::new()));
}

#[derive(Debug)]
struct NodesByBatch(HashMap<String, Vec<String>>);

impl StatusUrlResolver for NodesByBatch {
    fn status_urls(&self, _: &str, batch_id: &str) -> Vec<String> {
        self.0[batch_id].clone()
    }
}

#[tokio::test]
async fn each_batch_is_queried_at_its_own_node() {
    let ids: Vec<String> = (0..4).map(id).collect();
    let apis = [
        RestApi::new([answer(200, r#"{"data": []}"#)]).await,
        RestApi::new([answer(200, r#"{"data": []}"#)]).await,
    ];
    let [a, b] = [0, 1].map(|index: usize| apis[index].url());
    let orders = [vec![a.clone(), b.clone()], vec![b, a]];
    let nodes = ids.iter().enumerate().map(|(n, id)| (id.clone(), orders[n % 2].clone()));
    let reader = sawtooth().with_nodes(Arc::new(NodesByBatch(nodes.collect())));
    reader.statuses(SERVICE, &ids).await.unwrap();
    for (index, api) in apis.iter().enumerate() {
        let lines: Vec<String> = api.requests().into_iter().map(|request| request.line).collect();
        let expected = format!("GET /batch_statuses?id={},{}", ids[index], ids[index + 2]);
        assert_eq!(lines, [expected]);
    }
}

#[tokio::test]
async fn next_node_is_queried_if_one_is_unavailable() {
    let ids = [id(1)];
    let [id] = &ids;
    let healthy = RestApi::new([recorded("committed", &[("BATCH", id)])]).await;
    let cut = recorded("committed", &[("BATCH", id)])[..200].to_vec();
    for bad in [
        recorded("timed_out_17", &[]),
        recorded("server_error_500", &[]),
        recorded("queue_full_31", &[]),
        recorded("send_timed_out_19", &[]),
        Vec::new(),
        cut,
    ] {
        let api = RestApi::new([bad]).await;
        let reader = reader(&[unused_address().await, api.url(), healthy.url()]);
        let answer = reader.statuses(SERVICE, &ids).await;
        assert_eq!(answer, Ok(vec![report(id, Committed)]));
        assert_eq!(api.requests().len(), 1);
    }
}

#[tokio::test]
async fn first_error_names_its_node_if_all_are_unavailable() {
    let api = RestApi::new([recorded("timed_out_17", &[])]).await;
    let url = api.url().replace("http://", "http://user:pass-word@");
    let error =
        reader(&[url, unused_address().await]).statuses(SERVICE, &[id(1)]).await.unwrap_err();
    let expected = format!("{}: HTTP status 503: Validator Timed Out (code 17): ", api.url());
    assert!(
        matches!(&error, BatchError::Unavailable(reason) if reason.starts_with(&expected)),
        "{error}"
    );
}

#[tokio::test]
async fn invalid_response_is_an_error_without_failover() {
    let ids = [id(1)];
    let [id] = &ids;
    let other = RestApi::new([recorded("committed", &[("BATCH", id)])]).await;
    for (wrong, reason) in [
        (answer(200, ""), "statuses: EOF"),
        (answer(200, "<html>a page</html>"), "statuses: expected value"),
        (answer(200, r#"{"data": [{"id": 7, "status": []}]}"#), "statuses: invalid type"),
        (answer(200, &format!(r#"{{"data": [{{"id": "{id}", "#)), "statuses: EOF"),
        (recorded("committed", &[]), "was not requested"),
        (answer(200, &" ".repeat(9 << 20)), "longer than 8388608 bytes"),
        (recorded("not_found_404", &[]), "HTTP status 404: 404: Not Found"),
        (recorded("bad_id_60", &[]), "HTTP status 400: Invalid Resource Id (code 60)"),
        (answer(401, "who are you?"), "HTTP status 401: who are you?"),
        (answer(302, ""), "HTTP status 302: empty response"),
    ] {
        let api = RestApi::new([wrong]).await;
        let reader = reader(&[api.url(), other.url()]);
        let error = reader.statuses(SERVICE, &ids).await.unwrap_err();
        match &error {
            BatchError::InvalidAnswer(text) => {
                assert!(text.starts_with(&api.url()) && text.contains(reason), "{text}");
            }
            other => panic!("{other}"),
        }
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn one_invalid_response_fails_the_whole_call() {
    let ids: Vec<String> = (0..501).map(id).collect();
    let right = recorded("committed", &[("BATCH", &ids[0])]);
    let api = RestApi::new([right, recorded("committed", &[])]).await;
    let answer = query(api.url(), &ids).await;
    assert!(matches!(answer, Err(BatchError::InvalidAnswer(_))), "{answer:?}");
}

#[tokio::test]
async fn invalid_id_is_not_requested() {
    let api = RestApi::new([answer(200, r#"{"data": []}"#)]).await;
    for text in ["", "zz", &id(10).to_uppercase(), &format!("{}&wait=9", &id(1)[7..])] {
        let answer = query(api.url(), &[text.to_owned()]).await;
        assert!(matches!(answer, Err(BatchError::InternalError(_))), "{answer:?}");
    }
    assert!(api.requests().is_empty());
}

#[tokio::test]
async fn batch_without_a_node_is_an_error() {
    let answer = reader(&[]).statuses(SERVICE, &[id(1)]).await;
    assert!(matches!(answer, Err(BatchError::InternalError(_))), "{answer:?}");
}

#[test]
fn connections_come_from_the_options() {
    assert_eq!(reader(&[]).connections(), 2);
}
