use std::sync::Arc;

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderValue, Method, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use grid_batch_core::ServiceId;
use grid_batch_core::ledger::{BodyParts, ForwardedRequest, ForwardedResponse, PassThroughError};
use log::debug;
use tokio::sync::OwnedSemaphorePermit;

use super::Forwarding;
use crate::{
    access::{Caller, cylinder_token},
    http::{ApiError, RequestError, ServerError, discard_body},
    pass_through::ForwardError,
    rate_limits::LimitError,
};

/// The longest body of a request that only reads: a list of ids.
const BODY_LIMIT: usize = 256 * 1024;

/// The headers of the client that may concern a node.
const HEADERS: [&str; 2] = ["content-type", "splinterprotocolversion"];

impl Forwarding {
    /// The answer of a node, or the error if the path is not one of the ledger's.
    pub(crate) async fn answer(
        &self,
        request: Request,
        refused: ApiError,
    ) -> Result<Response, ApiError> {
        let (mut request, body) = request.into_parts();
        let is_socket = self.is_socket(&request);
        if !is_socket && !self.is_served(&request) {
            discard_body(&request.headers, body);
            return Err(refused);
        }
        let service_id = service_of(request.uri.path());
        let caller = Caller::of(&request)?;
        caller.check_reads_ledger()?;
        caller.check_selected(service_id.as_ref())?;
        let forwarded = self.forwarded(&request, body).await?;
        if is_socket {
            return self.open_socket(&mut request, forwarded).await;
        }
        let answer = self.forward(forwarded).await;
        let status = answer.as_ref().ok().map(|answer| answer.status);
        let answer = match self.open_resource(&request, status).await? {
            Some(json) => json.into_response(),
            None => respond(answer?),
        };
        match request.method {
            Method::HEAD => Ok(answer.map(|_| Body::empty())),
            _ => Ok(answer),
        }
    }

    fn is_served(&self, request: &Parts) -> bool {
        let path = request.uri.path();
        let serves = |is_post| self.to.as_ref().is_some_and(|to| to.serves(is_post, path));
        match request.method {
            Method::GET | Method::HEAD => serves(false),
            Method::POST => serves(true),
            _ => false,
        }
    }

    async fn forwarded(&self, request: &Parts, body: Body) -> Result<ForwardedRequest, ApiError> {
        let body = if request.method == Method::POST {
            Some(self.api.bodies.read(&request.headers, body, BODY_LIMIT).await?.bytes)
        } else {
            discard_body(&request.headers, body);
            None
        };
        let given =
            |name: &'static str| Some((name, request.headers.get(name)?.to_str().ok()?.to_owned()));
        let mut headers: Vec<_> = HEADERS.into_iter().filter_map(given).collect();
        let is_listed = Caller::of(request)?.has_listed_key();
        let token = cylinder_token(&request.headers).filter(|_| !is_listed);
        headers.extend(token.map(|token| ("authorization", format!("Bearer Cylinder:{token}"))));
        let links = self.api.links(request);
        headers.push(("x-forwarded-host", links.host()));
        headers.push(("x-forwarded-proto", links.scheme().to_owned()));
        let (path, query) = (request.uri.path().to_owned(), request.uri.query());
        Ok(ForwardedRequest { path, query: query.map(str::to_owned), headers, body })
    }

    pub(super) async fn forward(
        &self,
        request: ForwardedRequest,
    ) -> Result<ForwardedResponse, ApiError> {
        let to = self.to.as_ref().ok_or(RequestError::NotFound)?;
        let answer_place = Arc::clone(&self.answers).try_acquire_owned();
        let answer_place = answer_place.map_err(|_| LimitError::TooManyRequests)?;
        let _place = self.places.acquire().await.map_err(|_| ServerError::Internal)?;
        let answer = to.forward(request).await.map_err(not_answered)?;
        Ok(ForwardedResponse { body: with_place(answer.body, answer_place), ..answer })
    }
}

pub(super) fn not_answered(error: PassThroughError) -> ApiError {
    debug!(error:%; "a request is not answered by a node");
    match error {
        PassThroughError::TimedOut(_) => ForwardError::NodeTimedOut.into(),
        _ => ForwardError::NodeUnavailable.into(),
    }
}

/// The body, which keeps its place until it was read.
fn with_place(body: BodyParts, place: OwnedSemaphorePermit) -> BodyParts {
    Box::pin(body.map(move |part| {
        let _place = &place;
        part
    }))
}

fn respond(answer: ForwardedResponse) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = (status, Body::from_stream(answer.body)).into_response();
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The service that a path of Scabbard's interface names. What other paths read concerns all services.
fn service_of(path: &str) -> Option<ServiceId> {
    let mut segments = path.strip_prefix("/scabbard/")?.split('/');
    format!("{}::{}", segments.next()?, segments.next()?).parse().ok()
}
