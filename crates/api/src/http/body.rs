use std::time::Duration;

use axum::{
    body::{Body, HttpBody},
    http::{HeaderMap, header::EXPECT},
};
use http_body_util::BodyExt;
use tokio::{
    select,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::http::{
    ApiError, MemoryBudget, MemoryReservation, RequestError,
    slow_bodies::{BodiesInProgress, BodyInProgress},
};

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
    budget: MemoryBudget,
    timeout: Duration,
    in_progress: BodiesInProgress,
}

impl BodyReader {
    /// A body must begin to arrive within this time, and may pause for as long.
    const GRACE: Duration = Duration::from_secs(5);
    /// The least bytes a second after that.
    const SLOWEST_RATE: u32 = 4 * 1024;

    pub(crate) fn new(budget: MemoryBudget, timeout: Duration) -> Self {
        Self { budget, timeout, in_progress: BodiesInProgress::default() }
    }

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
            Err(_) => Err(RequestError::BodyTimeout(self.timeout).into()),
        };
        if read.is_err() {
            discard_body(headers, body);
        }
        read
    }

    async fn collect(&self, body: &mut Body, limit: usize) -> Result<RequestBody, ApiError> {
        if body.size_hint().lower() > limit as u64 {
            return Err(RequestError::BodyTooLong { limit }.into());
        }
        let mut collected = RequestBody { bytes: Vec::new(), reservation: self.budget.reserve()? };
        let (started, progress) = (Instant::now(), self.in_progress.begin());
        loop {
            let frame = select! {
                frame = body.frame() => frame,
                () = progress.refused() => return Err(RequestError::BodyTooSlow.into()),
                () = sleep_until(started + longest_wait(collected.bytes.len())) => {
                    return Err(RequestError::BodyTooSlow.into());
                }
            };
            let Some(frame) = frame else { return Ok(collected) };
            let frame = frame.map_err(|_| RequestError::IncompleteBody)?;
            let Ok(data) = frame.into_data() else { continue };
            let length = collected.bytes.len() + data.len();
            if length > limit {
                return Err(RequestError::BodyTooLong { limit }.into());
            }
            grow(&mut collected.reservation, length, &progress).await?;
            collected.bytes.extend_from_slice(&data);
            progress.received(length);
        }
    }
}

/// Extends a reservation. If the memory is used up, a slow body is refused to make room.
async fn grow(
    reservation: &mut MemoryReservation,
    length: usize,
    progress: &BodyInProgress,
) -> Result<(), ApiError> {
    const CHECK_INTERVAL: Duration = Duration::from_millis(5);
    /// A body that is refused returns its memory within this time.
    const CHECKS: usize = 40;
    loop {
        let Err(overloaded) = reservation.grow_to(length) else { return Ok(()) };
        if !progress.refuse_slowest_other() {
            return Err(overloaded);
        }
        for _ in 0..CHECKS {
            sleep(CHECK_INTERVAL).await;
            if reservation.grow_to(length).is_ok() {
                return Ok(());
            }
        }
    }
}

/// How long a body may have taken after so many bytes have arrived.
fn longest_wait(received: usize) -> Duration {
    let received = u32::try_from(received).unwrap_or(u32::MAX);
    BodyReader::GRACE + Duration::from_secs((received / BodyReader::SLOWEST_RATE).into())
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
