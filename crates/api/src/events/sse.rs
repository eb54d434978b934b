//! The format of server-sent events, and a body that a task writes.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

/// One message of a stream. A client keeps the last `id`, and sends it when it connects again.
pub(super) fn message(id: &str, data: &str) -> String {
    format!("id: {id}\ndata: {data}\n\n")
}

/// A message without an event: it keeps the connection open, and moves the position of the client.
pub(super) fn keep_alive(id: &str) -> String {
    format!(": keep-alive\nid: {id}\n\n")
}

/// A body that is written as fast as the client reads: unread events wait in the task that makes it.
#[derive(Debug)]
pub(super) struct StreamBody(mpsc::Receiver<Bytes>);

impl StreamBody {
    /// A body, and where its parts are sent.
    pub(super) fn new() -> (mpsc::Sender<Bytes>, Self) {
        let (sender, receiver) = mpsc::channel(1);
        (sender, Self(receiver))
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}
