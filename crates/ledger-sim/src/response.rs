use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::{
    Response, StatusCode,
    body::{Body, Frame, SizeHint},
    ext::ReasonPhrase,
    header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue},
};
use thiserror::Error;

use crate::events::Subscription;

/// The response to a request.
#[derive(Debug)]
pub(crate) struct SimResponse {
    pub(crate) status: StatusCode,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    /// The reason phrase, if it is not the standard one of the status.
    reason: Option<&'static str>,
    /// Whether the connection breaks in the middle of the body.
    pub(crate) breaks: bool,
    /// The subscription, if the response opens a websocket.
    pub(crate) subscription: Option<Box<Subscription>>,
}

/// The result of a request.
#[derive(Debug)]
pub(crate) enum SimReply {
    Response(SimResponse),
    /// No response yet: the client waits for a change.
    Wait,
}

impl From<SimResponse> for SimReply {
    fn from(response: SimResponse) -> Self {
        Self::Response(response)
    }
}

impl SimResponse {
    pub(crate) fn new(
        status: StatusCode,
        content_type: &'static str,
        body: impl Into<Bytes>,
    ) -> Self {
        Self {
            status,
            content_type: Some(content_type),
            headers: Vec::new(),
            body: body.into(),
            reason: None,
            breaks: false,
            subscription: None,
        }
    }

    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { content_type: None, ..Self::new(status, "", Bytes::new()) }
    }

    /// The answer of another server that has taken the ledger's address.
    pub(crate) fn page_of_another_server(status: u16) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::NOT_FOUND);
        Self::new(status, "text/html", "<html><body>\nThis is another server.\n</body></html>\n")
    }

    pub(crate) fn with_header(self, name: HeaderName, value: &'static str) -> Self {
        self.with_value(name, HeaderValue::from_static(value))
    }

    pub(crate) fn with_value(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn with_reason(self, reason: &'static str) -> Self {
        Self { reason: Some(reason), ..self }
    }

    /// The ledger closes the connection after this response.
    pub(crate) fn closing(self) -> Self {
        self.with_header(CONNECTION, "close")
    }

    pub(crate) fn into_response(self) -> Response<ResponseBody> {
        let body =
            ResponseBody { length: self.body.len(), stage: BodyStage::new(self.body, self.breaks) };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        if let Some(reason) = self.reason {
            response.extensions_mut().insert(ReasonPhrase::from_static(reason.as_bytes()));
        }
        let headers = response.headers_mut();
        if let Some(content_type) = self.content_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        for (name, value) in self.headers {
            headers.insert(name, value);
        }
        response
    }
}

/// A body being sent: all of it, or the half that is sent before the connection breaks.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    length: usize,
    stage: BodyStage,
}

#[derive(Debug)]
enum BodyStage {
    Complete(Bytes),
    Half(Bytes),
    /// Lets hyper send the first half before the connection breaks.
    Flush,
    Break,
    Done,
}

#[derive(Debug, Error)]
#[error("the simulated ledger breaks the connection")]
pub(crate) struct ConnectionBroken;

impl BodyStage {
    fn new(body: Bytes, breaks: bool) -> Self {
        if breaks {
            Self::Half(body.slice(..body.len() / 2))
        } else if body.is_empty() {
            Self::Done
        } else {
            Self::Complete(body)
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ConnectionBroken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ConnectionBroken>>> {
        match std::mem::replace(&mut self.stage, BodyStage::Done) {
            BodyStage::Complete(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            BodyStage::Half(bytes) => {
                self.stage = BodyStage::Flush;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            BodyStage::Flush => {
                self.stage = BodyStage::Break;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            BodyStage::Break => Poll::Ready(Some(Err(ConnectionBroken))),
            BodyStage::Done => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.stage, BodyStage::Done)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length as u64)
    }
}
