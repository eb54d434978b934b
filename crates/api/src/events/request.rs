use std::time::Duration;

use axum::http::request::Parts;
use grid_batch_core::ServiceId;
use grid_batch_core::events::{EventFilter, EventPosition};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    access::Caller,
    events::EventRequestError,
    http::{ApiError, EventKindName, PageLimit, WaitSeconds, parse_value, read_params},
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

/// The parameters of a page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EventPageParams {
    /// `next` of the page before, `oldest` or `latest`
    after: Option<String>,
    /// Only events of this service
    service_id: Option<String>,
    /// Only events of these kinds
    #[param(value_type = Option<Vec<EventKindName>>)]
    kind: Option<Vec<String>>,
    /// Limit of the events of the page: 1 to 1,000, by default 100
    #[param(value_type = Option<usize>, minimum = 1, maximum = 1_000)]
    limit: PageLimit,
    /// Wait up to so many seconds until there is an event
    #[param(value_type = Option<u32>)]
    wait: Option<WaitSeconds>,
}

/// The parameters of a stream.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct StreamParams {
    /// `next` of a page, `oldest` or, by default, `latest`
    after: Option<String>,
    /// Only events of this service
    service_id: Option<String>,
    /// Only events of these kinds
    #[param(value_type = Option<Vec<EventKindName>>)]
    kind: Option<Vec<String>>,
}

impl EventRequest {
    /// Reads the query of a request for a page.
    pub(super) fn of_page(request: &Parts, wait_limit: Duration) -> Result<Self, ApiError> {
        let params: EventPageParams = read_params(request)?;
        let wait = params.wait.map(|wait| wait.at_most(wait_limit));
        let PageLimit(limit) = params.limit;
        let stream =
            StreamParams { after: params.after, service_id: params.service_id, kind: params.kind };
        Ok(Self { limit, wait, ..Self::parse(&stream, request)? })
    }

    /// Reads the query of a request for a stream. A client that connects again sends where it was as
    /// `Last-Event-ID`.
    pub(super) fn of_stream(request: &Parts) -> Result<Self, ApiError> {
        let params: StreamParams = read_params(request)?;
        let parsed = Self::parse(&params, request)?;
        let Some(last) = request.headers.get("last-event-id") else { return Ok(parsed) };
        let last = last.to_str().ok().filter(|last| !last.is_empty());
        match last {
            Some(last) => Ok(Self { from: Some(parse_position(last)?), ..parsed }),
            None => Ok(parsed),
        }
    }

    fn parse(params: &StreamParams, request: &Parts) -> Result<Self, ApiError> {
        let service_id: Option<ServiceId> =
            params.service_id.as_deref().map(str::parse).transpose()?;
        Caller::of(request)?.check_selected(service_id.as_ref())?;
        let kinds = params.kind.iter().flatten().filter(|kind| !kind.is_empty());
        let kinds = kinds.map(|kind| parse_value("kind", kind));
        Ok(Self {
            from: params.after.as_deref().map(parse_position).transpose()?,
            filter: EventFilter {
                services: service_id.into_iter().collect(),
                kinds: kinds.collect::<Result<_, _>>()?,
            },
            limit: PageLimit::default().0,
            wait: None,
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
