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

/// What a request is answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    /// What stands behind the status, where it is not the usual.
    reason: Option<&'static str>,
    /// Whether the connection breaks in the middle of the body.
    pub(crate) breaks: bool,
    /// What follows where the answer opens an event socket.
    pub(crate) subscription: Option<Box<Subscription>>,
}

/// What a ledger makes of a request.
#[derive(Debug)]
pub(crate) enum Reply {
    Answer(Answer),
    /// Nothing yet: the client waits for a change.
    Wait,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl Answer {
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

    /// The ledger hangs up after this answer.
    pub(crate) fn closing(self) -> Self {
        self.with_header(CONNECTION, "close")
    }

    pub(crate) fn into_response(self) -> Response<Sending> {
        let sending = Sending { length: self.body.len(), stage: Stage::of(self.body, self.breaks) };
        let mut response = Response::new(sending);
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

/// A body on its way, all of it or the half that comes before the connection breaks.
#[derive(Debug)]
pub(crate) struct Sending {
    length: usize,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Whole(Bytes),
    Half(Bytes),
    /// What was written is sent before the connection breaks.
    Flush,
    Break,
    Done,
}

#[derive(Debug, Error)]
#[error("the answer breaks off, as it was told to")]
pub(crate) struct BrokenOff;

impl Stage {
    fn of(body: Bytes, breaks: bool) -> Self {
        if breaks {
            Self::Half(body.slice(..body.len() / 2))
        } else if body.is_empty() {
            Self::Done
        } else {
            Self::Whole(body)
        }
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Stage::Half(bytes) => {
                self.stage = Stage::Flush;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Stage::Flush => {
                self.stage = Stage::Break;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Stage::Break => Poll::Ready(Some(Err(BrokenOff))),
            Stage::Done => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length as u64)
    }
}
