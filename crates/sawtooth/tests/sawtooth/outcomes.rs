//! The outcome of a POST for each kind of response.

use std::{sync::Arc, time::Duration};

use grid_batch_core::{
    GlobalScopeId, ManualClock, ScopeId,
    ledger::{
        Ledger,
        Outcome::{Accepted, Ambiguous, Busy, NotSent, Refused, Rejected},
        SubmissionAnswer,
    },
};
use grid_batch_http::{HttpError, HttpOptions, HttpResponse, mocks::MockHttpRequests};
use grid_batch_protocol::{BatchList, Message};
use grid_batch_sawtooth::{BasicAuth, Sawtooth, SawtoothOptions};
use tokio::net::TcpListener;

use crate::{
    batches::{Nodes, batch, sawtooth, submission},
    rest_api::{RestApi, answer, recorded, unused_address},
};

async fn send_to(sender: &Sawtooth, url: &str) -> SubmissionAnswer {
    sender.send(url, &submission(&batch(1))).await
}

/// The response to the question before a POST.
fn unknown() -> Vec<u8> {
    recorded("unknown", &[("BATCH", &batch(1).header_signature)])
}

/// The answer of a sender whose client has this response to the POST.
async fn outcome_with(response: &[u8]) -> SubmissionAnswer {
    let mut client = MockHttpRequests::new();
    let [question, response] = [&unknown(), response].map(parsed);
    client.expect_get().times(1).return_once(|_, _| Ok(question));
    client.expect_post().times(1).return_once(|_, _, _| Ok(response));
    let options = SawtoothOptions::default();
    let sender = Sawtooth::with_client(options, Nodes::none(), Arc::new(client)).unwrap();
    send_to(&sender, "http://node").await
}

/// The status and the body of a response.
fn parsed(response: &[u8]) -> HttpResponse {
    let text = String::from_utf8(response.to_vec()).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    HttpResponse { status, retry_after: None, body: Ok(body.as_bytes().to_vec()) }
}

/// The answer of the sender when the REST API sends this response to the POST.
async fn outcome_of(sender: &Sawtooth, response: Vec<u8>) -> SubmissionAnswer {
    let api = RestApi::new([unknown(), response]).await;
    let answer = send_to(sender, &api.url()).await;
    let posts = api.requests().into_iter().filter(|request| request.line.starts_with("POST "));
    assert_eq!(posts.count(), 1, "a batch is POSTed once");
    answer
}

#[tokio::test]
async fn batch_is_posted_in_the_documented_format() {
    let api = RestApi::new([unknown(), recorded("submitted_202", &[])]).await;
    let basic_auth = Some(BasicAuth::new("Aladdin", "open sesame"));
    let options = SawtoothOptions { basic_auth, ..SawtoothOptions::default() };
    let url = format!("{}/base/", api.url());
    let batch = batch(1);
    let sender = Sawtooth::new(options, Nodes::none()).unwrap();
    let accepted = sender.send(&url, &submission(&batch)).await;

    let expected =
        SubmissionAnswer { outcome: Accepted, status: Some(202), message: None, retry_after: None };
    assert_eq!(accepted, expected);
    let request = api.requests().remove(1);
    assert_eq!(request.line, "POST /base/batches");
    for header in [
        "content-type: application/octet-stream",
        "authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
    ] {
        assert!(request.headers.iter().any(|other| other == header), "{request:?}");
    }
    assert_eq!(BatchList::decode(&request.body[..]).unwrap().batches, [batch]);
    assert!(!format!("{sender:?}").contains("QWxh"), "{sender:?}");
}

#[tokio::test]
async fn recorded_response_has_its_outcome() {
    for (name, status, outcome) in [
        ("submitted_202", 202, Accepted),
        ("unknown_error_10", 500, Ambiguous),
        ("not_ready_15", 503, Busy),
        ("timed_out_17", 503, Ambiguous),
        ("disconnected_18", 503, Ambiguous),
        ("send_timed_out_19", 408, NotSent),
        ("invalid_response_20", 500, Ambiguous),
        ("rejected_30", 400, Rejected),
        ("queue_full_31", 429, Busy),
        ("empty_34", 400, Rejected),
        ("undecodable_35", 400, Rejected),
        ("wrong_type_42", 400, Refused),
        ("bad_id_60", 400, Refused),
        ("batch_not_found_71", 404, Refused),
        ("too_long_413", 413, Rejected),
        ("not_found_404", 404, Refused),
        ("server_error_500", 500, Ambiguous),
    ] {
        let answer = outcome_with(&recorded(name, &[])).await;
        assert_eq!((answer.outcome, answer.status), (outcome, Some(status)), "{name}");
        assert_eq!(answer.message.is_none(), outcome == Accepted, "{name}");
    }
}

#[tokio::test]
async fn proxy_response_has_its_outcome() {
    for (status, outcome) in [
        (200, Accepted),
        (201, Ambiguous),
        (204, Ambiguous),
        (301, Refused),
        (307, Refused),
        (400, Refused),
        (401, Refused),
        (403, Refused),
        (404, Refused),
        (405, Refused),
        (408, Ambiguous),
        (413, Rejected),
        (429, Busy),
        (499, Refused),
        (500, Ambiguous),
        (502, Ambiguous),
        (503, Ambiguous),
        (504, Ambiguous),
        (999, Ambiguous),
    ] {
        for body in ["", "<html>a page</html>", r#"{"error":"a text"}"#, r#"{"error":{"code":-1}}"#]
        {
            let answer = outcome_with(&answer(status, body)).await;
            assert_eq!((answer.outcome, answer.status), (outcome, Some(status)), "{body}");
        }
    }
}

#[tokio::test]
async fn batch_is_not_posted_without_an_answer_before() {
    let mut client = MockHttpRequests::new();
    let refused = || HttpError::NotSent("refused".to_owned());
    client.expect_get().times(1).return_once(move |_, _| Err(refused()));
    client.expect_post().never();
    let options = SawtoothOptions::default();
    let sender = Sawtooth::with_client(options, Nodes::none(), Arc::new(client)).unwrap();
    assert_eq!(send_to(&sender, "http://node").await.outcome, NotSent);
}

#[tokio::test]
async fn message_of_ledger_or_proxy_is_passed_on() {
    let sender = sawtooth();
    let message = async |response| outcome_of(&sender, response).await.message.unwrap();
    assert_eq!(
        message(recorded("rejected_30", &[])).await,
        "Submitted Batches Invalid (code 30): The submitted BatchList was rejected by the validator. \
         It was poorly formed, or has an invalid signature."
    );
    assert_eq!(message(answer(502, "<p>\n Bad gateway\n</p>")).await, "<p> Bad gateway </p>");
    assert_eq!(message(answer(404, "")).await, "empty response");
}

#[tokio::test]
async fn retry_after_of_a_busy_ledger_is_passed_on() {
    let sender = sawtooth();
    let busy = b"HTTP/1.1 429 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n";
    let answer = outcome_of(&sender, busy.to_vec()).await;
    assert_eq!((answer.outcome, answer.retry_after), (Busy, Some(Duration::from_secs(7))));
}

#[tokio::test]
async fn status_decides_even_if_the_body_breaks() {
    let sender = sawtooth();
    let cut = |name| {
        let whole = recorded(name, &[]);
        whole[..whole.len() - 9].to_vec()
    };
    for (name, outcome) in [
        ("submitted_202", Accepted),
        ("queue_full_31", Busy),
        ("timed_out_17", Ambiguous),
        // Without the error code it may be a response of a proxy.
        ("rejected_30", Refused),
        ("not_ready_15", Ambiguous),
        ("send_timed_out_19", Ambiguous),
    ] {
        assert_eq!(outcome_of(&sender, cut(name)).await.outcome, outcome, "{name}");
    }
}

#[tokio::test]
async fn refused_connection_means_not_sent() {
    let sender = sawtooth();
    let answer = send_to(&sender, &unused_address().await).await;
    assert_eq!((answer.outcome, answer.status), (NotSent, None));
    assert!(answer.message.unwrap().contains("refused"));
}

#[tokio::test]
async fn incomplete_response_is_ambiguous() {
    let sender = sawtooth();
    for response in ["", "HTTP/1.1 202 Acc", "garbage\r\n\r\n"] {
        let answer = outcome_of(&sender, response.into()).await;
        assert_eq!((answer.outcome, answer.status), (Ambiguous, None), "{response}");
    }
}

#[tokio::test]
async fn node_that_does_not_answer_gets_no_batch() {
    // It never accepts a connection.
    let hung = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let request_timeout = Duration::from_millis(100);
    let http = HttpOptions { request_timeout, ..HttpOptions::default() };
    let sawtooth =
        Sawtooth::new(SawtoothOptions { http, ..SawtoothOptions::default() }, Nodes::none())
            .unwrap();
    let url = format!("http://{}", hung.local_addr().unwrap());
    let answer = sawtooth.send(&url, &submission(&batch(1))).await;
    assert_eq!((answer.outcome, answer.status), (NotSent, None));
}

#[tokio::test]
async fn batch_is_posted_once_the_node_has_answered() {
    let sender = sawtooth();
    for (before, outcome) in [
        (unknown(), Accepted),
        (recorded("pending", &[("BATCH", &batch(1).header_signature)]), Accepted),
        (recorded("committed", &[("BATCH", &batch(1).header_signature)]), Ambiguous),
        (recorded("timed_out_17", &[]), NotSent),
        (recorded("queue_full_31", &[]), NotSent),
        (Vec::new(), NotSent),
        // The response to the POST shows more.
        (recorded("bad_id_60", &[]), Accepted),
        (answer(200, "garbage"), Accepted),
    ] {
        let text = String::from_utf8_lossy(&before).into_owned();
        let api = RestApi::new([before, recorded("submitted_202", &[])]).await;
        let answer = send_to(&sender, &api.url()).await;
        assert_eq!(answer.outcome, outcome, "{text}");
        let requests = if outcome == Accepted { 2 } else { 1 };
        assert_eq!(api.requests().len(), requests, "{text}");
    }
}

#[tokio::test]
async fn batch_asked_about_ahead_is_posted_at_once() {
    let api = RestApi::new([unknown(), recorded("submitted_202", &[])]).await;
    let sawtooth = sawtooth();
    let ids = [batch(1).header_signature.parse().unwrap()];
    sawtooth
        .clone()
        .with_nodes(Nodes::new([api.url()]))
        .ask_ahead(GlobalScopeId.service_id(), &ids)
        .await;
    assert_eq!(send_to(&sawtooth, &api.url()).await.outcome, Accepted);
    let lines: Vec<_> = api.requests().into_iter().map(|request| request.line).collect();
    assert_eq!(lines, [format!("GET /batch_statuses?id={}", ids[0]), "POST /batches".to_owned()]);
}

#[tokio::test]
async fn batch_is_asked_about_again_after_a_while() {
    let api = RestApi::new([unknown(), unknown(), recorded("submitted_202", &[])]).await;
    let clock = Arc::new(ManualClock::default());
    let sawtooth = sawtooth().with_clock(clock.clone());
    let ids = [batch(1).header_signature.parse().unwrap()];
    sawtooth
        .clone()
        .with_nodes(Nodes::new([api.url()]))
        .ask_ahead(GlobalScopeId.service_id(), &ids)
        .await;
    clock.advance(Duration::from_secs(2));
    assert_eq!(send_to(&sawtooth, &api.url()).await.outcome, Accepted);
    assert_eq!(api.requests().len(), 3);
}

#[tokio::test]
async fn invalid_url_is_refused_without_its_secrets() {
    let sender = sawtooth();
    for url in ["", "ledger:8008", "ftp://user:pass-word@ledger", "http://user:pass-word@ledger/?x"]
    {
        let answer = send_to(&sender, url).await;
        assert_eq!((answer.outcome, answer.status), (Refused, None), "{url}");
        assert!(!answer.message.unwrap().contains("pass-word"));
    }
}
