use std::{sync::Arc, time::Duration};

use axum::{
    body::Bytes,
    extract::State,
    http::{
        HeaderName,
        header::{CACHE_CONTROL, CONTENT_TYPE},
        request::Parts,
    },
    response::{IntoResponse, Response},
};
use grid_batch_core::events::{EventFilter, EventPage, EventPosition, PositionedEvent};
use log::debug;
use tokio::{
    select,
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{
    context::EventContext,
    event_json::EventJson,
    request::{EventRequest, StreamParams},
    sse,
    wake_up::Waiter,
};
use crate::{
    access::Caller,
    http::{ApiError, Problems},
    rate_limits::LimitError,
    state::WaitingListener,
};

/// How many events are read at once. So many wait for a client that reads slowly.
const PAGE: usize = 100;
/// After this long without an event, a comment shows that the connection is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// After this long the stream ends, so that a client that does not read gives up its place.
const LONGEST: Duration = Duration::from_secs(600);

/// `GET /v1/events/stream`: events as they happen, until the client ends it.
#[utoipa::path(
    get, path = "/v1/events/stream", tag = "events", operation_id = "streamEvents", summary = "Events as they happen",
    params(
        StreamParams,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client has"),
    ),
    responses((status = 200, description = "The stream", body = String, content_type = "text/event-stream"), Problems),
)]
pub(super) async fn get(
    State(context): State<Arc<EventContext>>,
    request: Parts,
) -> Result<Response, ApiError> {
    let caller = Caller::of(&request)?.clone();
    let request = EventRequest::of_stream(&request)?;
    let listener = context.api.listeners.begin(caller.key());
    let listener = listener.ok_or(LimitError::TooManyEventListeners)?;
    let waiter = context.wake_up.subscribe();
    let from = request.from.unwrap_or(EventPosition::Latest);
    // Before the response begins, so that a wrong position is an error.
    let first = context.read(from, request.filter.clone(), PAGE).await?;
    let (parts, body) = sse::body();
    let ends_at = Instant::now() + LONGEST;
    let filter = request.filter;
    let stream =
        EventStream { context, caller, filter, parts, waiter, ends_at, _listener: listener };
    tokio::spawn(stream.write(first));
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        // Nginx would collect what is written.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, body).into_response())
}

/// Writes events to one client.
struct EventStream {
    context: Arc<EventContext>,
    caller: Caller,
    filter: EventFilter,
    parts: mpsc::Sender<Bytes>,
    waiter: Waiter,
    ends_at: Instant,
    _listener: WaitingListener,
}

impl EventStream {
    /// Writes until the client is gone, the server stops, or it took long enough. Then the client connects again
    /// and goes on.
    async fn write(mut self, first: EventPage) {
        let mut page = first;
        let mut written_at = Instant::now();
        if page.events.is_empty() && self.send(sse::keep_alive(page.next.as_str())).await.is_none()
        {
            return;
        }
        loop {
            if let Some(text) = messages(&page) {
                if self.send(text).await.is_none() {
                    return;
                }
                written_at = Instant::now();
            } else if written_at.elapsed() >= KEEP_ALIVE {
                if self.send(sse::keep_alive(page.next.as_str())).await.is_none() {
                    return;
                }
                written_at = Instant::now();
            }
            if Instant::now() >= self.ends_at || (!page.more && !self.wait().await) {
                return;
            }
            if !self.caller.is_still_allowed() {
                debug!(caller = self.caller.name().as_str(); "a stream of events ends with its token");
                return;
            }
            let from = EventPosition::After(page.next.clone());
            match self.context.read(from, self.filter.clone(), PAGE).await {
                Ok(next) => page = next,
                // The client connects again, and gets the error as a response.
                Err(error) => {
                    debug!(error:%; "a stream of events ends");
                    return;
                }
            }
        }
    }

    /// `None`: the client is gone, or the server stops.
    async fn send(&self, text: String) -> Option<()> {
        select! {
            () = self.context.api.shutdown.requested() => None,
            () = sleep_until(self.ends_at) => None,
            sent = self.parts.send(text.into()) => sent.ok(),
        }
    }

    /// Waits until the store should be read again. `false`: the client is gone, or the server stops.
    async fn wait(&mut self) -> bool {
        select! {
            () = self.context.api.shutdown.requested() => false,
            () = self.parts.closed() => false,
            () = self.waiter.wait() => true,
        }
    }
}

fn messages(page: &EventPage) -> Option<String> {
    let write = |text: String, positioned: &PositionedEvent| {
        let json = serde_json::to_string(&EventJson::new(positioned.event.clone()));
        text + &sse::message(positioned.cursor.as_str(), &json.unwrap_or_default())
    };
    (!page.events.is_empty()).then(|| page.events.iter().fold(String::new(), write))
}
