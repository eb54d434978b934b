use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::{Stream, future::BoxFuture};
use futures_util::StreamExt;
use grid_batch_core::{
    BatchError, BatchResult, HeaderId, LedgerEvent, LedgerEventStream, LedgerEvents, ScopeId,
    ServiceScopeId,
};
use grid_batch_http::{HttpError, TextFrames};
use serde::Deserialize;

use crate::{
    answer::header_id,
    shared::{Shared, located, scope_of},
    watch::OpenSocket,
    words::shown,
};

/// Listens to Scabbard services.
///
/// What they say is remembered before it is given out, and counts as proof.
pub struct ScabbardEvents(pub(crate) Arc<Shared>);

impl ScabbardEvents {
    /// Opens a socket at the first node that opens one. The first error tells why, where none does.
    async fn listen(&self, service_id: &str) -> BatchResult<LedgerEventStream> {
        let scope = scope_of(service_id)?;
        let last_seen = self.0.watch.last_seen(scope.service_id());
        let mut failure = None;
        // It is about no batch.
        for node in self.0.nodes_of(&scope, "")? {
            match self.open(&node, &scope, last_seen).await {
                Ok(frames) => return Ok(self.stream(&scope, frames)),
                Err(error) => drop(failure.get_or_insert(located(&node, error.into()))),
            }
        }
        Err(failure.unwrap_or_else(|| BatchError::Unavailable("no node was asked".to_owned())))
    }

    /// Goes on after what was seen last. A node that does not know it any more is asked for all.
    async fn open(
        &self,
        node: &str,
        scope: &ServiceScopeId,
        last_seen: Option<HeaderId>,
    ) -> Result<TextFrames, HttpError> {
        match self.0.caller.listen(node, scope, last_seen).await {
            Err(HttpError::Refused { status: 500 }) if last_seen.is_some() => {
                self.0.caller.listen(node, scope, None).await
            }
            frames => frames,
        }
    }

    fn stream(&self, scope: &ServiceScopeId, frames: TextFrames) -> LedgerEventStream {
        let socket = self.0.watch.open(scope.service_id());
        EventStream(Some(Listener { shared: Arc::clone(&self.0), socket, frames })).boxed()
    }
}

impl LedgerEvents for ScabbardEvents {
    fn subscribe<'a>(
        &'a self,
        service_id: &'a str,
    ) -> BoxFuture<'a, BatchResult<LedgerEventStream>> {
        Box::pin(self.listen(service_id))
    }
}

/// Events until the socket breaks, or says what is no event.
struct EventStream(Option<Listener>);

struct Listener {
    shared: Arc<Shared>,
    socket: OpenSocket,
    frames: TextFrames,
}

impl Stream for EventStream {
    type Item = BatchResult<LedgerEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(listener) = &mut self.0 else { return Poll::Ready(None) };
        let Poll::Ready(frame) = listener.frames.poll_next_unpin(context) else {
            listener.socket.mark_caught_up();
            return Poll::Pending;
        };
        let event = frame.map(|frame| listener.hear(&frame?));
        if !matches!(event, Some(Ok(_))) {
            // Before it is told: from now on events are missed.
            self.0 = None;
        }
        Poll::Ready(event)
    }
}

impl Listener {
    fn hear(&self, frame: &str) -> BatchResult<LedgerEvent> {
        #[derive(Deserialize)]
        struct Frame {
            #[serde(deserialize_with = "header_id")]
            id: HeaderId,
        }

        self.socket.mark_busy();
        let Frame { id } = serde_json::from_str(frame).map_err(|error| no_event(&error))?;
        self.shared.seen.add(self.socket.service(), id);
        self.socket.mark_seen(id);
        Ok(LedgerEvent { transaction_id: Some(id.to_string()) })
    }
}

fn no_event(error: &serde_json::Error) -> BatchError {
    let reason = shown(&error.to_string());
    BatchError::InvalidAnswer(format!("a frame is no event: {reason}"))
}

impl fmt::Debug for ScabbardEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScabbardEvents").field("nodes", &self.0.nodes).finish_non_exhaustive()
    }
}
