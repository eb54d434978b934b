use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use grid_batch_support::ErrorChain;
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Body, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;

use crate::{HttpError, stream::MaybeTlsStream};

/// An open connection, for one request after another.
///
/// No task belongs to it: the future of its request reads and writes. So a request wakes one task only.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// `None` after its end.
    driver: Option<http1::Connection<TokioIo<MaybeTlsStream>, Full<Bytes>>>,
}

/// A request that has no response.
pub(crate) enum SendFailure {
    /// The connection was closed before a byte of this request was written.
    Unsent(Box<Request<Full<Bytes>>>, HttpError),
    /// The server may have received the request.
    NoResponse(HttpError),
}

impl Connection {
    pub(crate) async fn new(stream: MaybeTlsStream) -> Result<Self, HttpError> {
        let opened = http1::handshake(TokioIo::new(stream)).await;
        let (sender, driver) =
            opened.map_err(|error| HttpError::NotSent(ErrorChain(&error).to_string()))?;
        Ok(Self { sender, driver: Some(driver) })
    }

    /// Sends a request, and returns the head of its response.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, SendFailure> {
        let Self { sender, driver } = self;
        let mut sending = pin!(sender.try_send_request(request));
        let sent = poll_fn(|context| {
            drive(driver, context);
            sending.as_mut().poll(context)
        });
        sent.await.map_err(|mut failure| {
            let request = failure.take_message();
            let message = ErrorChain(failure.error()).to_string();
            match request {
                Some(request) => {
                    SendFailure::Unsent(Box::new(request), HttpError::NotSent(message))
                }
                None => SendFailure::NoResponse(HttpError::NoResponse(message)),
            }
        })
    }

    /// The body of the response, up to this limit.
    pub(crate) async fn read(
        &mut self,
        mut body: Incoming,
        limit: usize,
    ) -> Result<Vec<u8>, HttpError> {
        let mut bytes = Vec::new();
        while let Some(part) = self.read_part(&mut body).await? {
            if bytes.len() + part.len() > limit {
                return Err(HttpError::TooLong { limit });
            }
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    /// The next part of the body of the response; `None` at its end.
    pub(crate) async fn read_part(
        &mut self,
        body: &mut Incoming,
    ) -> Result<Option<Bytes>, HttpError> {
        loop {
            let frame = poll_fn(|context| {
                if let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(context) {
                    return Poll::Ready(frame);
                }
                drive(&mut self.driver, context);
                Pin::new(&mut *body).poll_frame(context)
            });
            let Some(frame) = frame.await else { return Ok(None) };
            let frame =
                frame.map_err(|error| HttpError::NoResponse(ErrorChain(&error).to_string()))?;
            // Trailers are ignored.
            if let Ok(part) = frame.into_data() {
                return Ok(Some(part));
            }
        }
    }

    /// Whether the connection can take another request, as far as it is known now.
    pub(crate) fn is_ready(&mut self) -> bool {
        drive(&mut self.driver, &mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }
}

/// Reads and writes what is possible now. Errors are those of the request.
fn drive(
    driver: &mut Option<http1::Connection<TokioIo<MaybeTlsStream>, Full<Bytes>>>,
    context: &mut Context<'_>,
) {
    let polled = driver.as_mut().map(|driver| Pin::new(driver).poll(context));
    if polled.is_some_and(|polled| polled.is_ready()) {
        *driver = None;
    }
}
