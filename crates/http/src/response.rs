use std::time::{Duration, SystemTime};

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use grid_batch_core::{BatchError, BatchResult};
use grid_batch_support::one_line;

use crate::HttpError;

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// The HTTP status. It is valid even if the body did not arrive.
    pub status: u16,
    /// The pause that the server asked for with `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The body, or why it did not arrive completely.
    pub body: Result<Vec<u8>, HttpError>,
}

impl HttpResponse {
    /// The beginning of the body as one line, for messages. Without a body, the error.
    pub fn text(&self) -> String {
        match &self.body {
            Ok(body) => one_line(body),
            Err(error) => error.to_string(),
        }
    }

    /// The body, if the status is 200. Otherwise it is an error with this message of the response: the node is
    /// unavailable, or its answer is invalid because another request would get the same one.
    pub fn successful_body(self, message: impl FnOnce(&Self) -> String) -> BatchResult<Vec<u8>> {
        if self.status == 200 {
            return Ok(self.body?);
        }
        let text = format!("HTTP status {}: {}", self.status, message(&self));
        Err(match self.status {
            408 | 429 | 500.. => BatchError::Unavailable(text),
            _ => BatchError::InvalidAnswer(text),
        })
    }
}

/// The value of `Retry-After`: a number of seconds or a date. It may be very long: who obeys it needs a
/// limit.
///
/// A date is one of the server's clock, as `Date` is. Only without that it is compared with `now`.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let sent_at = headers.get(DATE).and_then(|value| value.to_str().ok());
    let sent_at = sent_at.and_then(|value| httpdate::parse_http_date(value).ok()).unwrap_or(now);
    Some(date.duration_since(sent_at).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let read = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            retry_after(&headers, SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770))
        };
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:00 GMT"), Some(Duration::ZERO));
        let year = Duration::from_hours(24 * 365);
        assert_eq!(read("31536000"), Some(year));
        assert!(read("Sat, 06 Nov 2094 08:49:37 GMT").unwrap() > 99 * year);
        assert_eq!(read("soon"), None);
        assert_eq!(retry_after(&HeaderMap::new(), SystemTime::UNIX_EPOCH), None);
    }

    #[test]
    fn status_tells_whether_a_node_may_answer_later() {
        let body = |status, body| {
            let response = HttpResponse { status, retry_after: None, body };
            response.successful_body(HttpResponse::text)
        };
        let text = || Ok(b"text".to_vec());
        assert_eq!(body(200, text()), Ok(b"text".to_vec()));
        for status in [408, 429, 500, 503, 599] {
            let error = BatchError::Unavailable(format!("HTTP status {status}: text"));
            assert_eq!(body(status, text()), Err(error));
        }
        for status in [204, 301, 400, 401, 404, 499] {
            let error = BatchError::InvalidAnswer(format!("HTTP status {status}: text"));
            assert_eq!(body(status, text()), Err(error));
        }
        let broken = || Err(HttpError::NoResponse("reset".to_owned()));
        assert!(matches!(body(200, broken()), Err(BatchError::Unavailable(_))));
        let long = Err(HttpError::TooLong { limit: 1 });
        assert!(matches!(body(200, long), Err(BatchError::InvalidAnswer(_))));
    }

    #[test]
    fn date_is_compared_with_the_servers_clock() {
        let header = |name, text: &str| (name, text.parse().unwrap());
        let headers = HeaderMap::from_iter([
            header(RETRY_AFTER, "Sun, 06 Nov 1994 08:49:37 GMT"),
            header(DATE, "Sun, 06 Nov 1994 08:49:30 GMT"),
        ]);
        assert_eq!(retry_after(&headers, SystemTime::UNIX_EPOCH), Some(Duration::from_secs(7)));
    }
}
