use std::time::{Duration, SystemTime};

use hyper::header::{DATE, HeaderMap, RETRY_AFTER};

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
    fn date_is_compared_with_the_servers_clock() {
        let header = |name, text: &str| (name, text.parse().unwrap());
        let headers = HeaderMap::from_iter([
            header(RETRY_AFTER, "Sun, 06 Nov 1994 08:49:37 GMT"),
            header(DATE, "Sun, 06 Nov 1994 08:49:30 GMT"),
        ]);
        assert_eq!(retry_after(&headers, SystemTime::UNIX_EPOCH), Some(Duration::from_secs(7)));
    }
}
