use futures_core::future::BoxFuture;
use futures_util::{StreamExt, stream::unfold};
use grid_batch_core::{BatchError, BatchResult, LedgerEvent, LedgerEventStream, LedgerEvents};
use grid_batch_http::{SocketOptions, TextFrames};
use log::warn;

use crate::{caller::Caller, frame::Frame, nodes::at};

/// All blocks, whatever they change.
const SUBSCRIBE: &str = r#"{"action":"subscribe","address_prefixes":[]}"#;

/// Listens for blocks, at the first node that can be reached.
///
/// The first event tells of the block that is the newest already: what was committed while the
/// socket opened is not missed.
#[derive(Debug, Clone)]
pub struct SawtoothEvents {
    caller: Caller,
    nodes: Vec<String>,
    options: SocketOptions,
}

impl SawtoothEvents {
    pub(crate) fn new(caller: Caller, nodes: Vec<String>, options: SocketOptions) -> Self {
        Self { caller, nodes, options }
    }
}

impl LedgerEvents for SawtoothEvents {
    fn subscribe<'a>(
        &'a self,
        _service_id: &'a str,
    ) -> BoxFuture<'a, BatchResult<LedgerEventStream>> {
        Box::pin(async move {
            let mut failed = BatchError::InternalError("no node is known to listen to".to_owned());
            for node in &self.nodes {
                let opening =
                    self.caller.open_socket(node, "subscriptions", SUBSCRIBE, &self.options);
                match opening.await {
                    Ok(frames) => return Ok(events(frames)),
                    Err(error) => failed = at(node, error.into()),
                }
            }
            Err(failed)
        })
    }
}

fn events(frames: TextFrames) -> LedgerEventStream {
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
        match Frame::read(&text?)? {
            Frame::Block => return Ok(LedgerEvent { transaction_id: None }),
            Frame::Warning(warning) => warn!(warning:%; "the ledger warns its listeners"),
            Frame::Error(error) => {
                return Err(BatchError::Unavailable(format!("the ledger says: {error}")));
            }
        }
    }
    Err(BatchError::Unavailable("the socket ended".to_owned()))
}
