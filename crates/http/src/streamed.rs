use std::{fmt, time::Duration};

use bytes::Bytes;
use reqwest::Response;
use tokio::time::timeout;

use crate::HttpError;

/// A response whose body is read part by part.
pub struct StreamedResponse {
    response: Response,
    /// The longest time without a part of the body.
    limit: Duration,
}

impl StreamedResponse {
    pub(crate) fn new(response: Response, limit: Duration) -> Self {
        Self { response, limit }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next part of the body; `None` at its end.
    pub async fn next_part(&mut self) -> Result<Option<Bytes>, HttpError> {
        match timeout(self.limit, self.response.chunk()).await {
            Ok(part) => part.map_err(|error| HttpError::from_reqwest(&error)),
            Err(_) => {
                let reason = format!("no part of the body arrived within {:?}", self.limit);
                Err(HttpError::TimedOut(reason))
            }
        }
    }
}

impl fmt::Debug for StreamedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedResponse").field("status", &self.status()).finish_non_exhaustive()
    }
}
