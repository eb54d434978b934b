use std::time::Duration;

use axum::{
    body::{Body, HttpBody},
    http::{HeaderMap, header::EXPECT},
};
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::http::{ApiError, MemoryBudget, MemoryReservation};

/// How long the rest of a refused body is read. If the connection were closed while the client still
/// writes, the client would not see the answer.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// The body of a request, with the memory that it takes.
#[derive(Debug)]
pub(crate) struct RequestBody {
    pub(crate) bytes: Vec<u8>,
    pub(crate) reservation: MemoryReservation,
}

/// Reads the bodies of requests, within limits of size, time and memory.
#[derive(Debug, Clone)]
pub(crate) struct BodyReader {
    pub(crate) budget: MemoryBudget,
    pub(crate) timeout: Duration,
}

impl BodyReader {
    /// Reads a body of at most `limit` bytes. Memory is reserved as the bytes arrive, whatever length
    /// the client announced.
    pub(crate) async fn read(
        &self,
        headers: &HeaderMap,
        mut body: Body,
        limit: usize,
    ) -> Result<RequestBody, ApiError> {
        let read = match timeout(self.timeout, self.collect(&mut body, limit)).await {
            Ok(read) => read,
            Err(_) => Err(ApiError::BodyTimeout(self.timeout)),
        };
        if read.is_err() {
            discard_body(headers, body);
        }
        read
    }

    async fn collect(&self, body: &mut Body, limit: usize) -> Result<RequestBody, ApiError> {
        if body.size_hint().lower() > limit as u64 {
            return Err(ApiError::BodyTooLong { limit });
        }
        let mut collected = RequestBody { bytes: Vec::new(), reservation: self.budget.reserve()? };
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| ApiError::IncompleteBody)?;
            let Ok(data) = frame.into_data() else { continue };
            let length = collected.bytes.len() + data.len();
            if length > limit {
                return Err(ApiError::BodyTooLong { limit });
            }
            collected.reservation.grow_to(length)?;
            collected.bytes.extend_from_slice(&data);
        }
        Ok(collected)
    }
}

/// Reads and drops the rest of a body in the background, while the request is answered. A client that
/// sent `Expect: 100-continue` has not sent the body and needs no reader.
pub(crate) fn discard_body(headers: &HeaderMap, mut body: Body) {
    if body.is_end_stream() || headers.contains_key(EXPECT) {
        return;
    }
    let read_to_end = async move { while let Some(Ok(_)) = body.frame().await {} };
    tokio::spawn(timeout(DISCARD_TIMEOUT, read_to_end));
}
