use std::sync::{Arc, Mutex, PoisonError};

use futures_core::future::BoxFuture;
use futures_util::{StreamExt, stream::unfold};
use grid_batch_core::{BatchError, BatchResult, LedgerEvent, LedgerEventStream, LedgerEvents};
use grid_batch_http::{TextFrames, WebSocketOptions, origin};
use log::warn;

use crate::{event_frame::EventFrame, nodes::with_node, rest_client::RestClient};

/// Subscribes to all blocks, whatever state they change.
const SUBSCRIPTION: &str = r#"{"action":"subscribe","address_prefixes":[]}"#;

/// Subscribes to blocks at the first reachable node.
///
/// The first event is the newest block that exists already, so a block that is committed while the
/// websocket opens is not missed.
#[derive(Debug, Clone)]
pub struct SawtoothEvents {
    client: RestClient,
    nodes: Vec<String>,
    options: WebSocketOptions,
    /// The node of the latest subscription.
    subscribed: Arc<Mutex<Option<String>>>,
}

impl SawtoothEvents {
    pub(crate) fn new(client: RestClient, nodes: Vec<String>, options: WebSocketOptions) -> Self {
        Self { client, nodes, options, subscribed: Arc::default() }
    }

    fn set_subscribed(&self, node: &str) {
        *self.subscribed.lock().unwrap_or_else(PoisonError::into_inner) = Some(origin(node));
    }
}

impl LedgerEvents for SawtoothEvents {
    fn subscribe<'a>(
        &'a self,
        _service_id: &'a str,
    ) -> BoxFuture<'a, BatchResult<LedgerEventStream>> {
        Box::pin(async move {
            let mut failure =
                BatchError::InternalError("no node is configured for events".to_owned());
            for node in &self.nodes {
                let opening =
                    self.client.subscribe(node, "subscriptions", SUBSCRIPTION, &self.options);
                match opening.await {
                    Ok(frames) => {
                        self.set_subscribed(node);
                        return Ok(event_stream(frames));
                    }
                    Err(error) => failure = with_node(node, error.into()),
                }
            }
            Err(failure)
        })
    }

    fn node(&self, _service_id: &str) -> Option<String> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn event_stream(frames: TextFrames) -> LedgerEventStream {
    let events = unfold(Some(frames), async |frames| {
        let mut frames = frames?;
        match next_event(&mut frames).await {
            Ok(event) => Some((Ok(event), Some(frames))),
            Err(error) => Some((Err(error), None)),
        }
    });
    events.boxed()
}

async fn next_event(frames: &mut TextFrames) -> BatchResult<LedgerEvent> {
    while let Some(text) = frames.next().await {
        match EventFrame::parse(&text?)? {
            EventFrame::Block => return Ok(LedgerEvent { transaction_id: None }),
            EventFrame::Warning(warning) => warn!(warning:%; "warning from the ledger"),
            EventFrame::Error(error) => {
                return Err(BatchError::Unavailable(format!("error from the ledger: {error}")));
            }
        }
    }
    Err(BatchError::Unavailable("the websocket ended".to_owned()))
}
