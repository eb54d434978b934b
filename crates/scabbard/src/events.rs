use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use futures_util::StreamExt;
use grid_batch_core::{
    BatchError, BatchResult, ItemId, LedgerEvent, LedgerEventStream, ScopeId, ServiceScopeId,
};
use grid_batch_http::{HttpError, TextFrames, origin};
use log::error;
use serde::Deserialize;

use crate::{
    Scabbard,
    context::{ScabbardContext, parse_scope},
    message::redacted_line,
    peer_listeners::{ListenedPeers, PeerListeners},
    repeated_events::RepeatedEvents,
    replay::Replay,
    status_response::header_id,
    subscriptions::{EventSource, LiveSubscription},
};

/// Subscribes to the events of Scabbard services.
///
/// The transaction of an event is remembered as evidence before the event is returned.
impl Scabbard {
    /// Subscribes at the first node that opens a websocket; without one, returns the first error.
    pub(crate) async fn open_stream(&self, service_id: &str) -> BatchResult<LedgerEventStream> {
        let scope = parse_scope(service_id)?;
        let peers = PeerListeners::listen(&self.0, &scope);
        self.0.replay_waits.opening(scope.service_id(), self.0.clock.monotonic());
        let mut failure = None;
        // The resolver expects a batch id, and a subscription has none.
        for node in self.0.nodes_of_batch(&scope, "")? {
            match ServiceEventStream::open(&self.0, EventSource::Node, &node, &scope, &scope).await
            {
                Ok(events) => {
                    return Ok(SubscribedEvents { events, _peers: peers }.boxed());
                }
                Err(error) => {
                    failure = failure.or(Some(BatchError::from(error).at(&origin(&node))));
                }
            }
        }
        self.0.replay_waits.broken(scope.service_id());
        Err(failure.unwrap_or_else(|| BatchError::Unavailable("no node was queried".to_owned())))
    }
}

/// The events of a node, while the peers of the service are listened to.
struct SubscribedEvents {
    events: ServiceEventStream,
    _peers: ListenedPeers,
}

impl Stream for SubscribedEvents {
    type Item = BatchResult<LedgerEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(context)
    }
}

/// Events of a service at one node, until the websocket breaks or receives an invalid frame.
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
    /// Requests all events if they are few; otherwise those after the last event, or again all if the
    /// node does not know that event.
    pub(crate) async fn open(
        context: &Arc<ScabbardContext>,
        source: EventSource,
        node: &str,
        at_node: &ServiceScopeId,
        scope: &ServiceScopeId,
    ) -> Result<Self, HttpError> {
        let ScabbardContext { client, subscriptions, .. } = &**context;
        let service = scope.service_id();
        let mut resume_after = subscriptions.resume_after(service, source);
        let mut frames = client.subscribe(node, at_node, resume_after).await;
        if let Err(HttpError::Refused { status: 500 }) = frames
            && resume_after.take().is_some()
        {
            frames = client.subscribe(node, at_node, None).await;
        }
        let frames = frames.inspect_err(|error| {
            if matches!(error, HttpError::NotSent(_) | HttpError::Refused { .. }) {
                subscriptions.mark_away(service, source, context.clock.monotonic());
            }
        })?;
        let replay = match resume_after {
            None => Replay::from_start(),
            Some(_) => Replay::partial(),
        };
        let now = context.clock.monotonic();
        let probe = Some(frames.probe());
        if let Some(failed_at) = context.pool.unanswered_at(&origin(node)) {
            subscriptions.mark_away(service, source, failed_at);
        }
        let subscription = subscriptions.register(service, source, replay, probe, now);
        if source == EventSource::Node {
            context.replay_waits.opened(service, now);
        }
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
        // A websocket that was silent for too long may be open at a node that goes on.
        let is_ended_by_node = matches!(frame, None | Some(Err(HttpError::NoResponse(_))));
        let event = frame.map(|frame| receiver.receive(&frame?));
        if is_ended_by_node {
            receiver.subscription.mark_ended_by_node(receiver.context.clock.monotonic());
        }
        if !matches!(event, Some(Ok(_))) {
            receiver.record_break();
            // End the subscription before the error is returned: from now on events are missed.
            self.0 = None;
        }
        Poll::Ready(event)
    }
}

impl EventReceiver {
    fn record_break(&self) {
        self.subscription.mark_broken();
        let service = self.subscription.service();
        let source = self.subscription.source();
        self.context.outages.broke(service, source, self.context.clock.monotonic());
        if let Ok(scope) = parse_scope(service.as_str()) {
            // The node may have been killed in the middle of a commit.
            self.context.state_roots_may_differ(&scope);
        }
        if self.subscription.source() == EventSource::Node {
            self.context.replay_waits.broken(service);
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
        if self.context.applied.add_event(self.subscription.service(), id) {
            self.context.foreign_transactions.heard(&self.context, self.subscription.service(), id);
        }
        let now = self.context.clock.monotonic();
        self.subscription.set_last_event(id);
        let is_repeated = self.repeated.receive(id, now);
        if is_repeated {
            error!(
                service:% = self.subscription.service(), transaction:% = id;
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
