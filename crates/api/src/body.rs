use std::time::Duration;

use axum::{
    body::{Body, HttpBody},
    http::{
        HeaderMap,
        header::{CONTENT_TYPE, EXPECT},
    },
};
use grid_batch_core::Excerpt;
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::{
    error::ApiError,
    room::{Room, Share},
};

/// How long a client is listened to whose body is refused: were the connection closed while it
/// writes, it would never read why.
const LINGER: Duration = Duration::from_secs(5);

/// The body of a request, and the room that it takes.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) bytes: Vec<u8>,
    pub(crate) share: Share,
}

/// Reads bodies, within bounds.
#[derive(Debug, Clone)]
pub(crate) struct BodyReader {
    pub(crate) room: Room,
    pub(crate) time_limit: Duration,
}

impl BodyReader {
    /// Reads a body of at most `limit` bytes. What has arrived takes room, not what was announced.
    pub(crate) async fn read(
        &self,
        headers: &HeaderMap,
        mut body: Body,
        limit: usize,
    ) -> Result<Held, ApiError> {
        let read = match timeout(self.time_limit, self.collect(&mut body, limit)).await {
            Ok(read) => read,
            Err(_) => Err(ApiError::TooSlow(self.time_limit)),
        };
        if read.is_err() {
            discard(headers, body);
        }
        read
    }

    async fn collect(&self, body: &mut Body, limit: usize) -> Result<Held, ApiError> {
        if body.size_hint().lower() > limit as u64 {
            return Err(ApiError::TooLong { limit });
        }
        let mut held = Held { bytes: Vec::new(), share: self.room.share()? };
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| ApiError::BrokenOff)?;
            let Ok(data) = frame.into_data() else { continue };
            let length = held.bytes.len() + data.len();
            if length > limit {
                return Err(ApiError::TooLong { limit });
            }
            held.share.grow_to(length)?;
            held.bytes.extend_from_slice(&data);
        }
        Ok(held)
    }
}

/// Lets a client write for a while, unless it waits to be told to, while it is answered.
pub(crate) fn discard(headers: &HeaderMap, mut body: Body) {
    if body.is_end_stream() || headers.contains_key(EXPECT) {
        return;
    }
    tokio::spawn(timeout(LINGER, async move { while let Some(Ok(_)) = body.frame().await {} }));
}

/// The request's Content-Type, where it has one and it is not this.
pub(crate) fn other_type(headers: &HeaderMap, expected: &str) -> Option<Excerpt> {
    let given = String::from_utf8_lossy(headers.get(CONTENT_TYPE)?.as_bytes());
    let essence = given.split(';').next().unwrap_or_default().trim();
    (!essence.eq_ignore_ascii_case(expected)).then(|| Excerpt::of(&given))
}
