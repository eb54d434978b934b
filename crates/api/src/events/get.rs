use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header::ACCEPT, request::Parts},
    response::{IntoResponse, Response},
};
use grid_batch_core::events::{EventPage, EventPosition};
use serde::Serialize;
use tokio::{select, time::Instant, time::sleep_until};
use utoipa::ToSchema;

use super::{
    context::EventContext,
    event_json::EventJson,
    request::{EventPageParams, EventRequest},
    stream,
};
use crate::{
    access::Caller,
    http::{ApiError, Problems},
    rate_limits::ClientKey,
};

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
struct EventPageJson {
    data: Vec<EventJson>,
    /// Where the next request goes on; never missing, because events are added.
    next: String,
    /// Whether there is more to read now.
    more: bool,
}

/// `GET /v1/events`: a page of events in order, or a stream of them.
#[utoipa::path(
    get, path = "/v1/events", tag = "events", operation_id = "listEvents", summary = "A page of events, or a stream of them",
    params(EventPageParams),
    responses(
        (status = 200, description = "The page; with `Accept: text/event-stream`, a stream", content(
            (EventPageJson = "application/json"),
            (String = "text/event-stream"),
        )),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<EventContext>>,
    request: Parts,
) -> Result<Response, ApiError> {
    if accepts_stream(&request.headers) {
        return stream::get(State(context), request).await;
    }
    let client = Caller::of(&request)?.key();
    let request = EventRequest::of_page(&request, context.api.options.status_wait_limit)?;
    let EventPage { events, next, more } = read_or_wait(&context, request, client).await?;
    let data = events.into_iter().map(|event| EventJson::new(event.event)).collect();
    Ok(Json(EventPageJson { data, next: next.to_string(), more }).into_response())
}

fn accepts_stream(headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accepts.is_some_and(|accept| accept.to_ascii_lowercase().contains("text/event-stream"))
}

/// Reads a page, and waits as long as the client wants until it has an event.
async fn read_or_wait(
    context: &EventContext,
    request: EventRequest,
    client: ClientKey,
) -> Result<EventPage, ApiError> {
    let EventRequest { from, filter, limit, wait } = request;
    let mut waiter = context.wake_up.subscribe();
    let from = from.unwrap_or(EventPosition::Oldest);
    let mut page = context.read(from, filter.clone(), limit).await?;
    let Some(wait) = wait else { return Ok(page) };
    let Some(_listener) = context.api.listeners.begin(client) else { return Ok(page) };
    let deadline = Instant::now() + wait;
    while page.events.is_empty() {
        if page.more && (Instant::now() >= deadline || context.api.shutdown.is_requested()) {
            return Ok(page);
        }
        if !page.more {
            select! {
                () = context.api.shutdown.requested() => return Ok(page),
                () = sleep_until(deadline) => return Ok(page),
                () = waiter.wait() => {}
            }
        }
        page = context.read(EventPosition::After(page.next), filter.clone(), limit).await?;
    }
    Ok(page)
}
