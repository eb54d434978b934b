use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{HeaderMap, Response, body::Incoming};
use tokio::time::timeout;

use crate::{HttpError, connection::Connection, pool::ConnectionPool};

/// A response whose body is read part by part.
pub struct StreamedResponse {
    status: u16,
    headers: HeaderMap,
    body: Incoming,
    /// `None` after the end of the body, or an error.
    connection: Option<Box<Connection>>,
    /// The longest time without a part of the body.
    limit: Duration,
    /// Keeps the connection after the end of the body.
    pool: Arc<ConnectionPool>,
    origin: String,
}

impl StreamedResponse {
    pub(crate) fn new(
        response: Response<Incoming>,
        connection: Box<Connection>,
        limit: Duration,
        pool: Arc<ConnectionPool>,
        origin: String,
    ) -> Self {
        let (parts, body) = response.into_parts();
        let (status, headers) = (parts.status.as_u16(), parts.headers);
        Self { status, headers, body, connection: Some(connection), limit, pool, origin }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The next part of the body; `None` at its end.
    pub async fn next_part(&mut self) -> Result<Option<Bytes>, HttpError> {
        let Some(mut connection) = self.connection.take() else { return Ok(None) };
        let Ok(part) = timeout(self.limit, connection.read_part(&mut self.body)).await else {
            let reason = format!("no part of the body arrived within {:?}", self.limit);
            return Err(HttpError::TimedOut(reason));
        };
        match part? {
            Some(part) => {
                self.connection = Some(connection);
                Ok(Some(part))
            }
            None => {
                if connection.is_ready() {
                    self.pool.keep(self.origin.clone(), connection);
                }
                Ok(None)
            }
        }
    }
}

impl fmt::Debug for StreamedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedResponse").field("status", &self.status).finish_non_exhaustive()
    }
}
