use futures_util::{StreamExt, stream::unfold};
use grid_batch_core::{
    BatchError, BatchResult, GlobalScopeId, LedgerEvent, LedgerEventStream, ScopeId,
};
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
/// The first event is the newest block that exists already, so a block that is committed while the
/// websocket opens is not missed.
impl Sawtooth {
    pub(crate) async fn subscribe(&self) -> BatchResult<LedgerEventStream> {
        let mut failure = BatchError::Unavailable("no node can be asked for events".to_owned());
        for node in &self.nodes.status_urls(GlobalScopeId.service_id().as_str(), "") {
            let client = &self.query_client;
            match client.subscribe(node, "subscriptions", SUBSCRIPTION, &self.websocket).await {
                Ok(frames) => {
                    *lock(&self.subscribed) = Some(origin(node));
                    return Ok(event_stream(frames, self.disconnection(node)));
                }
                Err(error) => {
                    if matches!(error, HttpError::NotSent(_) | HttpError::NoResponse(_)) {
                        self.disconnection(node).record(&error.to_string());
                    }
                    failure = BatchError::from(error).at(&origin(node));
                }
            }
        }
        Err(failure)
    }

    fn disconnection(&self, node: &str) -> Disconnection {
        Disconnection { client: self.query_client.clone(), node: node.to_owned() }
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
