use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use futures_util::StreamExt;
use grid_batch_core::ledger::{LedgerEvent, LedgerEventStream};
use grid_batch_core::{BatchError, BatchResult, ItemId, ScopeId, ServiceScopeId};
use grid_batch_http::{HttpError, TextFrames, origin};
use log::error;
use serde::Deserialize;

use crate::{
    Scabbard,
    context::{ScabbardContext, parse_scope},
    message::redacted_line,
    observed_nodes::{EventSource, LiveSubscription, ObservedNode},
    peer_listeners::PeerListeners,
    repeated_events::RepeatedEvents,
    replay::Replay,
    status_response::header_id,
};

/// Subscribes to the events of Scabbard services.
///
/// The transaction of an event is remembered as evidence before the event is returned.
impl Scabbard {
    /// Subscribes at the first node that opens a websocket; if there is none, returns the first error.
    pub(crate) async fn open_stream(&self, service_id: &str) -> BatchResult<LedgerEventStream> {
        let scope = parse_scope(service_id)?;
        let peers = PeerListeners::listen(&self.0, &scope);
        let (service, node) = (scope.service_id(), EventSource::Node);
        let now = self.0.clock.monotonic();
        self.0.observed.update(service, node, |node| node.replay_wait.opening(now));
        let mut failure = None;
        // The resolver expects a batch id, but a subscription has none.
        for node in self.0.nodes_of_batch(&scope, "")? {
            match ServiceEventStream::open(&self.0, EventSource::Node, &node, &scope, &scope).await
            {
                // The stream keeps `peers`, so that the peers are listened to while it exists.
                Ok(events) => return Ok(events.inspect(move |_| _ = &peers).boxed()),
                Err(error) => {
                    failure = failure.or(Some(BatchError::from(error).at(&origin(&node))));
                }
            }
        }
        self.0.observed.update(service, node, |node| node.replay_wait.broken());
        Err(failure.unwrap_or_else(|| BatchError::Unavailable("no node was queried".to_owned())))
    }
}

/// The events of a service at one node, until the websocket breaks or receives an invalid frame.
pub(crate) struct ServiceEventStream(Option<EventReceiver>);

struct EventReceiver {
    context: Arc<ScabbardContext>,
    subscription: LiveSubscription,
    repeated: RepeatedEvents,
    frames: TextFrames,
}

impl ServiceEventStream {
    /// Opens the events of a service, which has the scope `at_node` at this node.
    ///
    /// If there are only a few events, requests all of them. Otherwise requests those after the last event, or all if
    /// the node does not know the last event.
    pub(crate) async fn open(
        context: &Arc<ScabbardContext>,
        source: EventSource,
        node: &str,
        at_node: &ServiceScopeId,
        scope: &ServiceScopeId,
    ) -> Result<Self, HttpError> {
        let ScabbardContext { client, observed, .. } = &**context;
        let service = scope.service_id();
        let mut resume_after = observed.read(service, source, ObservedNode::resume_after);
        let mut frames = client.subscribe(node, at_node, resume_after).await;
        if let Err(HttpError::Refused { status: 500 }) = frames
            && resume_after.take().is_some()
        {
            frames = client.subscribe(node, at_node, None).await;
        }
        let frames = frames.inspect_err(|error| {
            if matches!(error, HttpError::NotSent(_) | HttpError::Refused { .. }) {
                let now = context.clock.monotonic();
                observed.update(service, source, |node| node.mark_away(now));
            }
        })?;
        let replay = match resume_after {
            None => Replay::from_start(),
            Some(_) => Replay::partial(),
        };
        let now = context.clock.monotonic();
        let probe = Some(frames.probe());
        if let Some(failed_at) = context.pool.unanswered_at(&origin(node)) {
            observed.update(service, source, |node| node.mark_away(failed_at));
        }
        let subscription = observed.register(service, source, replay, probe, now);
        let (context, repeated) = (Arc::clone(context), RepeatedEvents::new(now));
        Ok(Self(Some(EventReceiver { context, subscription, repeated, frames })))
    }
}

impl Stream for ServiceEventStream {
    type Item = BatchResult<LedgerEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(receiver) = &mut self.0 else { return Poll::Ready(None) };
        let Poll::Ready(frame) = receiver.frames.poll_next_unpin(context) else {
            receiver.subscription.mark_caught_up();
            return Poll::Pending;
        };
        // If a websocket receives nothing for too long, the node may still be running and have it open.
        let is_ended_by_node = matches!(frame, None | Some(Err(HttpError::NoResponse(_))));
        let event = frame.map(|frame| receiver.receive(&frame?));
        if !matches!(event, Some(Ok(_))) {
            receiver.record_break(is_ended_by_node);
            // The subscription ends before the error is returned, because events are missed from now on.
            self.0 = None;
        }
        Poll::Ready(event)
    }
}

impl EventReceiver {
    fn record_break(&self, is_ended_by_node: bool) {
        self.subscription.mark_broken(is_ended_by_node, self.context.clock.monotonic());
        if let Ok(scope) = parse_scope(self.subscription.service.as_str()) {
            // The node may have been killed in the middle of a commit.
            self.context.state_roots_may_differ(&scope);
        }
    }

    fn receive(&mut self, frame: &str) -> BatchResult<LedgerEvent> {
        #[derive(Deserialize)]
        struct EventFrame {
            #[serde(deserialize_with = "header_id")]
            id: ItemId,
        }

        self.subscription.mark_behind();
        let EventFrame { id } =
            serde_json::from_str(frame).map_err(|error| not_an_event(&error))?;
        let service = &self.subscription.service;
        if self.context.applied.add_event(service, id) {
            self.context.foreign_transactions.heard(&self.context, service, id);
        }
        let now = self.context.clock.monotonic();
        self.subscription.set_last_event(id);
        let is_known = self.context.latest_events.add(self.subscription.id, id);
        let is_repeated = self.repeated.receive(is_known, now);
        if is_repeated {
            error!(
                service:%, transaction:% = id;
                "the ledger has applied a transaction a second time: a batch was sent to it twice, or another \
                 client has sent it; compare the state of the circuit's nodes"
            );
        }
        Ok(LedgerEvent { transaction_id: Some(id.to_string()), is_repeated })
    }
}

fn not_an_event(error: &serde_json::Error) -> BatchError {
    let reason = redacted_line(&error.to_string());
    BatchError::InvalidAnswer(format!("a frame is not an event: {reason}"))
}
