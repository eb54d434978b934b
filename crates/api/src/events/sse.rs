//! The format of server-sent events, and a body that a task writes.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use futures_util::stream::unfold;
use tokio::sync::mpsc;

/// One message of a stream. A client keeps the last `id`, and sends it when it connects again.
pub(super) fn message(id: &str, data: &str) -> String {
    format!("id: {id}\ndata: {data}\n\n")
}

/// A message without an event: it keeps the connection open, and moves the position of the client.
pub(super) fn keep_alive(id: &str) -> String {
    format!(": keep-alive\nid: {id}\n\n")
}

/// A body, and where its parts are sent. It is written as fast as the client reads: unread events wait in the task that
/// makes it.
pub(super) fn body() -> (mpsc::Sender<Bytes>, Body) {
    let (sender, parts) = mpsc::channel(1);
    let parts = unfold(parts, async |mut parts: mpsc::Receiver<Bytes>| {
        Some((Ok::<_, Infallible>(parts.recv().await?), parts))
    });
    (sender, Body::from_stream(parts))
}
