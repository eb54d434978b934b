use std::time::Duration;

use futures_util::StreamExt;
use grid_batch_http::{HttpError, HttpRequests, TextFrames, WebSocketOptions};
use log::debug;
use serde_json::Value;
use tokio::time::Instant;

const SUBSCRIBE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}"#;
/// How long to wait before a node that does not offer websockets or this subscription is asked for it again.
const REFUSED_FOR: Duration = Duration::from_mins(10);
/// How long to wait before a broken websocket is opened again.
const BROKEN_FOR: Duration = Duration::from_secs(5);

/// A subscription to the new blocks of one node, over a websocket at the URL that its other requests use.
pub(super) struct HeadSubscription {
    frames: Option<TextFrames>,
    /// When it may be opened.
    due: Instant,
}

impl HeadSubscription {
    pub(super) fn new() -> Self {
        Self { frames: None, due: Instant::now() }
    }

    pub(super) fn is_open(&self) -> bool {
        self.frames.is_some()
    }

    pub(super) async fn open_if_due(&mut self, http: &dyn HttpRequests, url: &str) {
        if self.is_open() || Instant::now() < self.due {
            return;
        }
        match open(http, url).await {
            Ok(frames) => self.frames = Some(frames),
            Err(error) => {
                debug!(
                    error:%;
                    "the node does not offer a subscription to new blocks; it is asked for its latest \
                     block instead"
                );
                self.due = Instant::now() + REFUSED_FOR;
            }
        }
    }

    /// Waits for a message, and returns whether it reports a new block; `false` if the websocket is broken.
    pub(super) async fn next_block(&mut self) -> bool {
        let Some(frames) = &mut self.frames else { return false };
        match frames.next().await {
            Some(Ok(text)) => is_block(&text),
            Some(Err(_)) | None => {
                self.frames = None;
                self.due = Instant::now() + BROKEN_FOR;
                false
            }
        }
    }
}

async fn open(http: &dyn HttpRequests, url: &str) -> Result<TextFrames, HttpError> {
    let options =
        WebSocketOptions { open_timeout: Duration::from_secs(2), ..WebSocketOptions::default() };
    let mut frames = http.open_websocket(url, &[], &[SUBSCRIBE], &options).await?;
    let answer = tokio::time::timeout(options.open_timeout, frames.next()).await;
    match answer {
        Ok(Some(Ok(text))) if is_subscribed(&text) => Ok(frames),
        Ok(Some(Err(error))) => Err(error),
        _ => Err(HttpError::InvalidData("the node did not confirm the subscription".to_owned())),
    }
}

fn is_subscribed(text: &str) -> bool {
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    answer["id"] == 1 && answer["result"].is_string()
}

fn is_block(text: &str) -> bool {
    let message: Value = serde_json::from_str(text).unwrap_or_default();
    message["method"] == "eth_subscription" && message["params"]["result"]["hash"].is_string()
}

#[cfg(test)]
mod tests {
    use grid_batch_http::{HttpClient, HttpOptions};
    use grid_batch_test_chain::{Anvil, AnvilOptions, Mining};

    use super::*;

    fn http() -> HttpClient {
        HttpClient::new(&HttpOptions::default()).unwrap()
    }

    #[test]
    fn answer_and_blocks_are_recognized() {
        assert!(is_subscribed(r#"{"jsonrpc":"2.0","id":1,"result":"0x1"}"#));
        let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
        assert!(!is_subscribed(refused) && !is_subscribed("text"));
        let block = r#"{"method":"eth_subscription","params":{"result":{"hash":"0x1"}}}"#;
        assert!(is_block(block) && !is_block(refused) && !is_block("text"));
    }

    #[tokio::test]
    async fn node_with_websockets_reports_its_blocks() {
        let options = AnvilOptions { mining: Mining::Manual, ..AnvilOptions::default() };
        let chain = Anvil::start(&options).unwrap();
        let mut subscription = HeadSubscription::new();
        subscription.open_if_due(&http(), chain.url()).await;
        assert!(subscription.is_open());
        chain.mine(1).unwrap();
        assert!(subscription.next_block().await);
    }

    #[tokio::test]
    async fn node_without_websockets_is_not_subscribed_to() {
        let answer = |_: &str| ("404 Not Found".to_owned(), String::new());
        let server = crate::test_server::TestServer::start(answer).await;
        let mut subscription = HeadSubscription::new();
        subscription.open_if_due(&http(), server.url()).await;
        assert!(!subscription.is_open() && subscription.due > Instant::now());
    }
}
