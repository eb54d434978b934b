//! What requests and websockets report of nodes that do not answer.

use std::{sync::Arc, time::Duration};

use grid_batch_core::ManualClock;
use grid_batch_http::{HttpClient, HttpOptions, WebSocketOptions};
use grid_batch_nodes::{NodePool, NodePoolOptions};

use crate::server::{Server, unused_address};

/// The record of one node, and the options of clients that report to it.
struct Reported {
    url: String,
    clock: Arc<ManualClock>,
    nodes: NodePool,
}

impl Reported {
    fn of(url: String) -> Self {
        let clock = Arc::new(ManualClock::default());
        let nodes = NodePool::with_options(NodePoolOptions {
            urls: vec![url.clone()],
            clock: Arc::<ManualClock>::clone(&clock),
            ..NodePoolOptions::default()
        });
        Self { url, clock, nodes }
    }

    async fn get(&self, request_timeout: Duration) {
        let nodes = self.nodes.clone();
        let options = HttpOptions { request_timeout, nodes, ..HttpOptions::default() };
        let url = format!("{}/secret?secret", self.url);
        let _ = HttpClient::new(&options).unwrap().get(&url, &[]).await;
    }

    /// Why the node does not answer.
    fn reason(&self) -> Option<String> {
        self.clock.advance(Duration::from_secs(2));
        let outage = self.nodes.outages().pop()?;
        assert!(!outage.reason.contains("secret"), "{outage:?}");
        Some(outage.reason)
    }
}

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn request_without_an_answer_is_reported() {
    let refused = Reported::of(format!("http://{}", unused_address().await));
    refused.get(LONG).await;
    assert!(refused.reason().unwrap().contains("refused"));

    let hung = Server::new(|peer| peer.stall()).await;
    let hung = Reported::of(hung.url());
    hung.get(Duration::from_millis(100)).await;
    assert!(hung.reason().is_some());

    let broken = Server::responding_once("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
    let broken_off = Reported::of(broken.url());
    broken_off.get(LONG).await;
    assert!(broken_off.reason().is_some());
}

#[tokio::test]
async fn response_ends_an_outage_unless_it_is_of_a_gateway() {
    let ends_it = async |status: u16| {
        let response = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
        let server = Server::responding_once(response).await;
        let reported = Reported::of(server.url());
        reported.nodes.failed(&reported.url, "reset");
        reported.get(LONG).await;
        reported.reason().is_none()
    };
    for (status, expected) in [
        (200, true),
        (401, true),
        (404, true),
        (500, true),
        (502, false),
        (503, false),
        (504, false),
    ] {
        assert_eq!(ends_it(status).await, expected, "{status}");
    }
}

#[tokio::test]
async fn websocket_that_does_not_open_is_reported() {
    let reported = Reported::of(format!("http://{}", unused_address().await));
    let nodes = reported.nodes.clone();
    let client = HttpClient::new(&HttpOptions { nodes, ..HttpOptions::default() }).unwrap();
    let url = reported.url.replace("http", "ws");
    assert!(client.open_websocket(&url, &[], &[], &WebSocketOptions::default()).await.is_err());
    assert!(reported.reason().unwrap().contains("refused"));
}
