use std::{sync::Arc, time::Duration};

use grid_batch_core::ledger::{Ledger, Outcome, Submission, SubmissionAnswer};
use grid_batch_http::{HttpOptions, HttpResponse, mocks::MockHttpRequests};
use grid_batch_protocol::{CylinderToken, Message, list_of_one};
use grid_batch_scabbard::{Scabbard, ScabbardOptions};

use crate::{
    batches::{batch, key, service, token, uncounted_submission},
    fixtures::fixture,
    node::{Node, Reaction, response},
    nodes::{Nodes, unused_address},
};

fn sender() -> Scabbard {
    sender_with(HttpOptions::default())
}

fn sender_with(http: HttpOptions) -> Scabbard {
    let options = ScabbardOptions { http, ..ScabbardOptions::default() };
    Scabbard::new(&token(), Nodes::at(["http://nowhere"]), options).unwrap()
}

async fn send(node: &Node) -> SubmissionAnswer {
    sender().send(&node.url, &uncounted_submission(1)).await
}

/// The sender's answer when a node responds with these bytes.
async fn answer_for(bytes: Vec<u8>) -> SubmissionAnswer {
    send(&Node::responding(bytes).await).await
}

/// The answer of a sender whose client has this response.
async fn answer_with(response: Vec<u8>) -> SubmissionAnswer {
    let text = String::from_utf8(response).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = Ok(body.as_bytes().to_vec());
    let response = HttpResponse { status, retry_after: None, body };
    let mut client = MockHttpRequests::new();
    client.expect_post().times(1).return_once(|_, _, _| Ok(response));
    let (nodes, options) = (Nodes::at(["http://nowhere"]), ScabbardOptions::default());
    let sender = Scabbard::with_client(&token(), nodes, options, Arc::new(client)).unwrap();
    sender.send("http://node", &uncounted_submission(1)).await
}

#[tokio::test]
async fn batch_is_sent_as_a_list_of_one_with_the_token() {
    let node = Node::responding(fixture("submitted_202")).await;
    for base in [node.url.clone(), format!("{}/", node.url), format!("{}/behind/", node.url)] {
        let answer = sender().send(&base, &uncounted_submission(1)).await;
        assert_eq!((answer.outcome, answer.status), (Outcome::Accepted, Some(202)));
    }
    let requests = node.requests();
    let lines: Vec<_> = requests.iter().map(|request| request.line()).collect();
    let line = "POST /scabbard/abcDE-F0123/gsAA/batches";
    assert_eq!(lines, [line, line, "POST /behind/scabbard/abcDE-F0123/gsAA/batches"]);
    assert_eq!(requests[0].body, list_of_one(&batch(1).encode_to_vec()));
    let authorization = requests[0].header("authorization").unwrap();
    let token = authorization.strip_prefix("Bearer Cylinder:").unwrap();
    assert_eq!(CylinderToken::verify(token), Ok(key().public_key()));
}

#[tokio::test]
async fn recorded_response_has_its_outcome_and_message() {
    for (name, outcome, status, message) in [
        ("undecodable_400", Outcome::Rejected, 400, "Invalid body: not a valid list of batches"),
        ("bad_signature_400", Outcome::Rejected, 400, "No valid batches provided"),
        (
            "newer_protocol_400",
            Outcome::Refused,
            400,
            "Client requires a newer protocol than can be provided: 2 > 1",
        ),
        ("unauthorized_401", Outcome::Refused, 401, "Client is not authorized"),
        (
            "no_such_service_404",
            Outcome::Refused,
            404,
            "scabbard service gsZZ on circuit abcDE-F0123 not found",
        ),
        ("busy_429", Outcome::Busy, 429, "the queue is full, and the node accepted nothing"),
        ("server_error_500", Outcome::Ambiguous, 500, "The server encountered an error"),
    ] {
        let expected = SubmissionAnswer {
            outcome,
            status: Some(status),
            message: Some(message.to_owned()),
            retry_after: None,
        };
        assert_eq!(answer_with(fixture(name)).await, expected, "{name}");
    }
}

#[tokio::test]
async fn proxy_response_has_its_outcome() {
    for (status, outcome) in [
        (200, Outcome::Accepted),
        (201, Outcome::Ambiguous),
        (403, Outcome::Refused),
        (405, Outcome::Refused),
        (408, Outcome::Ambiguous),
        (413, Outcome::Rejected),
        (502, Outcome::Ambiguous),
        (504, Outcome::Ambiguous),
    ] {
        let answer = answer_with(response(status, "<html>\n  a proxy\n</html>")).await;
        assert_eq!((answer.outcome, answer.status), (outcome, Some(status)));
        assert_eq!(answer.message.unwrap(), "<html> a proxy </html>");
    }
}

#[tokio::test]
async fn retry_after_is_passed_on() {
    for (status, outcome) in [(429, Outcome::Busy), (503, Outcome::Ambiguous)] {
        let bytes = format!("HTTP/1.1 {status} W\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n");
        let answer = answer_for(bytes.into_bytes()).await;
        assert_eq!((answer.outcome, answer.retry_after), (outcome, Some(Duration::from_secs(7))));
    }
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let elsewhere = Node::responding(fixture("submitted_202")).await;
    let location = format!("{}/scabbard/abcDE-F0123/gsAA/batches", elsewhere.url);
    let head = format!("HTTP/1.1 307 W\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(answer_for(head.into_bytes()).await.outcome, Outcome::Refused);
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn refused_connection_means_not_sent() {
    let answer = sender().send(&unused_address(), &uncounted_submission(1)).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::NotSent, None));
}

#[tokio::test]
async fn invalid_url_is_refused() {
    for url in ["", "node:8085", "ftp://node", "http://node?key=1"] {
        let answer = sender().send(url, &uncounted_submission(1)).await;
        assert_eq!(answer.outcome, Outcome::Refused, "{url}: {answer:?}");
    }
}

#[tokio::test]
async fn incomplete_response_is_ambiguous_and_not_retried() {
    for bytes in
        [&b""[..], b"HTTP/1.1 202 Acc", b"HTTP/1.1 202 Accepted\r\ncontent-le", b"hello\r\n\r\n"]
    {
        let node = Node::start(|_| Reaction::RespondAndClose(bytes.to_vec())).await;
        let answer = send(&node).await;
        assert_eq!((answer.outcome, answer.status), (Outcome::Ambiguous, None), "{bytes:?}");
        assert_eq!(node.requests().len(), 1);
    }
}

#[tokio::test]
async fn status_decides_even_if_the_body_breaks() {
    let mut bytes = fixture("submitted_202");
    bytes.truncate(bytes.len() - 10);
    let node = Node::start(move |_| Reaction::RespondAndClose(bytes.clone())).await;
    let answer = send(&node).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Accepted, Some(202)));
}

#[tokio::test]
async fn request_timeout_is_ambiguous() {
    let request_timeout = Duration::from_millis(50);
    let sender = sender_with(HttpOptions { request_timeout, ..HttpOptions::default() });
    let node = Node::start(|_| Reaction::Stall).await;
    let answer = sender.send(&node.url, &uncounted_submission(1)).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Ambiguous, None));
    assert_eq!(node.requests().len(), 1);
}

#[tokio::test]
async fn batch_without_a_valid_id_is_not_sent() {
    let node = Node::responding(fixture("submitted_202")).await;
    let without_id = Submission::new("a batch".to_owned(), service(), b"bytes".to_vec());
    let answer = sender().send(&node.url, &without_id).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Rejected, None));
    assert!(answer.message.unwrap().contains("an id has 128"));
    assert!(node.requests().is_empty());
}

#[tokio::test]
async fn token_is_not_shown() {
    let secret = token().as_str().to_owned();
    let node = Node::start(|request| {
        let echo = format!("you sent {}", request.header("authorization").unwrap());
        Reaction::Respond(response(400, &echo))
    })
    .await;
    let scabbard =
        Scabbard::new(&token(), Nodes::at([&node.url]), ScabbardOptions::default()).unwrap();
    let answer = scabbard.send(&node.url, &uncounted_submission(1)).await;
    let shown = format!("{scabbard:?} {answer:?}");
    let prefix = &secret[..20];
    assert!(!shown.contains(prefix), "{shown}");
    assert_eq!(answer.outcome, Outcome::Refused);
}
