use std::time::Duration;

use axum::http::request::Parts;
use grid_batch_core::{EventFilter, EventKind, EventKindError, EventPosition, Excerpt};

use crate::{
    access::Caller,
    events::EventRequestError,
    http::{ApiError, Query, page_query::limit},
};

/// What a client asks of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventRequest {
    /// `None`: the client names none.
    pub(super) from: Option<EventPosition>,
    pub(super) filter: EventFilter,
    pub(super) limit: usize,
    pub(super) wait: Option<Duration>,
}

impl EventRequest {
    /// Reads the query of a request for a page.
    pub(super) fn of_page(request: &Parts, longest_wait: Duration) -> Result<Self, ApiError> {
        let query = Query::parse(request.uri.query())?;
        query.check_names(&["after", "limit", "service_id", "kind", "wait"])?;
        Self::parse(&query, request, longest_wait)
    }

    /// Reads the query of a request for a stream. A client that connects again sends where it was as
    /// `Last-Event-ID`.
    pub(super) fn of_stream(request: &Parts) -> Result<Self, ApiError> {
        let query = Query::parse(request.uri.query())?;
        query.check_names(&["after", "service_id", "kind"])?;
        let parsed = Self::parse(&query, request, Duration::ZERO)?;
        let Some(last) = request.headers.get("last-event-id") else { return Ok(parsed) };
        let last = last.to_str().ok().filter(|last| !last.is_empty());
        match last {
            Some(last) => Ok(Self { from: Some(parse_position(last)?), ..parsed }),
            None => Ok(parsed),
        }
    }

    fn parse(query: &Query, request: &Parts, longest_wait: Duration) -> Result<Self, ApiError> {
        let service_id = query.service_id()?;
        Caller::of(request)?.check_selected(service_id.as_ref())?;
        let kinds = query.get("kind")?.unwrap_or_default();
        let kinds = kinds.split(',').filter(|kind| !kind.is_empty()).map(parse_kind);
        Ok(Self {
            from: query.get("after")?.map(parse_position).transpose()?,
            filter: EventFilter {
                services: service_id.into_iter().collect(),
                kinds: kinds.collect::<Result<_, _>>()?,
            },
            limit: limit(query)?,
            wait: query.get("wait")?.map(|text| parse_wait(text, longest_wait)).transpose()?,
        })
    }
}

fn parse_position(text: &str) -> Result<EventPosition, ApiError> {
    match text {
        "oldest" => Ok(EventPosition::Oldest),
        "latest" => Ok(EventPosition::Latest),
        cursor => match cursor.parse() {
            Ok(cursor) => Ok(EventPosition::After(cursor)),
            Err(error) => Err(EventRequestError::InvalidEventCursor(error.to_string()).into()),
        },
    }
}

fn parse_kind(text: &str) -> Result<EventKind, ApiError> {
    let refused = |error: EventKindError| ApiError::invalid_value("kind", error.to_string());
    text.parse().map_err(refused)
}

fn parse_wait(text: &str, limit: Duration) -> Result<Duration, ApiError> {
    match text.parse::<u32>() {
        Ok(seconds) => Ok(limit.min(Duration::from_secs(seconds.into()))),
        Err(_) => {
            let rule = format!("it is {}; it must be a number of seconds", Excerpt::of(text));
            Err(ApiError::invalid_value("wait", rule))
        }
    }
}
