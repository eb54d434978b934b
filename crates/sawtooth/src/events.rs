use std::sync::{Arc, Mutex, PoisonError};

use futures_core::future::BoxFuture;
use futures_util::{StreamExt, stream::unfold};
use grid_batch_core::{BatchError, BatchResult, LedgerEvent, LedgerEventStream, LedgerEvents};
use grid_batch_http::{HttpError, TextFrames, WebSocketOptions, origin};
use log::warn;

use crate::{event_frame::EventFrame, nodes::with_node, rest_client::RestClient};

/// Subscribes to all blocks, whatever state they change.
const SUBSCRIPTION: &str = r#"{"action":"subscribe","address_prefixes":[]}"#;

/// The warning of a REST API that has lost the connection to its validator.
const VALIDATOR_UNAVAILABLE: &str = "Validator unavailable";

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

    fn disconnection(&self, node: &str) -> Disconnection {
        Disconnection { client: self.client.clone(), node: node.to_owned() }
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
                        return Ok(event_stream(frames, self.disconnection(node)));
                    }
                    Err(error) => {
                        if matches!(error, HttpError::NotSent(_) | HttpError::NoResponse(_)) {
                            self.disconnection(node).record(&error.to_string());
                        }
                        failure = with_node(node, error.into());
                    }
                }
            }
            Err(failure)
        })
    }

    fn node(&self, _service_id: &str) -> Option<String> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Records that the connection to a node, or to the validator behind it, broke.
struct Disconnection {
    client: RestClient,
    node: String,
}

impl Disconnection {
    fn record(&self, reason: &str) {
        self.client.record_disconnection(&self.node, reason);
    }
}

fn event_stream(frames: TextFrames, disconnection: Disconnection) -> LedgerEventStream {
    let events = unfold(Some((frames, disconnection)), async |stream| {
        let (mut frames, disconnection) = stream?;
        match next_event(&mut frames, &disconnection).await {
            Ok(event) => Some((Ok(event), Some((frames, disconnection)))),
            Err(error) => Some((Err(error), None)),
        }
    });
    events.boxed()
}

async fn next_event(
    frames: &mut TextFrames,
    disconnection: &Disconnection,
) -> BatchResult<LedgerEvent> {
    while let Some(text) = frames.next().await {
        if let Err(error @ HttpError::NoResponse(_)) = &text {
            disconnection.record(&error.to_string());
        }
        match EventFrame::parse(&text?)? {
            EventFrame::Block => return Ok(LedgerEvent::default()),
            EventFrame::Warning(warning) => {
                if warning == VALIDATOR_UNAVAILABLE {
                    disconnection.record(&warning);
                }
                warn!(warning:%; "warning from the ledger");
            }
            EventFrame::Error(error) => {
                return Err(BatchError::Unavailable(format!("error from the ledger: {error}")));
            }
        }
    }
    Err(BatchError::Unavailable("the websocket ended".to_owned()))
}
