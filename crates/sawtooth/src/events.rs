use futures_util::{StreamExt, stream::unfold};
use grid_batch_core::ledger::{LedgerEvent, LedgerEventStream};
use grid_batch_core::{BatchError, BatchResult, GlobalScopeId, ScopeId};
use grid_batch_http::{HttpError, TextFrames, origin};
use grid_batch_support::lock;
use log::warn;

use crate::{Sawtooth, event_frame::EventFrame, rest_client::RestClient};

/// Subscribes to all blocks, whatever state they change.
const SUBSCRIPTION: &str = r#"{"action":"subscribe","address_prefixes":[]}"#;

/// The warning of a REST API that has lost the connection to its validator.
const VALIDATOR_UNAVAILABLE: &str = "Validator unavailable";

/// Subscribes to blocks at the first reachable node.
///
/// The first event is the newest existing block, so a block that is committed while the websocket opens is not missed.
impl Sawtooth {
    pub(crate) async fn subscribe(&self) -> BatchResult<LedgerEventStream> {
        let mut failure = BatchError::Unavailable("no node can be asked for events".to_owned());
        for node in &self.nodes.status_urls(GlobalScopeId.service_id().as_str(), "") {
            let client = &self.client;
            match client
                .subscribe(node, "subscriptions", SUBSCRIPTION, &self.options.websocket)
                .await
            {
                Ok(frames) => {
                    *lock(&self.subscribed) = Some(origin(node));
                    return Ok(event_stream(frames, self.client.clone(), node.clone()));
                }
                Err(error) => {
                    if matches!(error, HttpError::NotSent(_) | HttpError::NoResponse(_)) {
                        client.record_disconnection(node, &error.to_string());
                    }
                    failure = BatchError::from(error).at(&origin(node));
                }
            }
        }
        Err(failure)
    }
}

/// The blocks of a node, until the websocket breaks or receives an error. It records it when the connection to the
/// node, or to the validator behind it, breaks.
fn event_stream(frames: TextFrames, client: RestClient, node: String) -> LedgerEventStream {
    let events = unfold(Some((frames, client, node)), async |stream| {
        let (mut frames, client, node) = stream?;
        let disconnected = |reason: &str| client.record_disconnection(&node, reason);
        match next_event(&mut frames, disconnected).await {
            Ok(event) => Some((Ok(event), Some((frames, client, node)))),
            Err(error) => Some((Err(error), None)),
        }
    });
    events.boxed()
}

async fn next_event(
    frames: &mut TextFrames,
    disconnected: impl Fn(&str),
) -> BatchResult<LedgerEvent> {
    while let Some(text) = frames.next().await {
        if let Err(error @ HttpError::NoResponse(_)) = &text {
            disconnected(&error.to_string());
        }
        match EventFrame::parse(&text?)? {
            EventFrame::Block => return Ok(LedgerEvent::default()),
            EventFrame::Warning(warning) => {
                if warning == VALIDATOR_UNAVAILABLE {
                    disconnected(&warning);
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
