use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::{HttpError, one_line};

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status. It counts even where the body did not arrive.
    pub status: u16,
    /// How long the other side asked to be left alone.
    pub retry_after: Option<Duration>,
    /// The body, or why it did not arrive as a whole.
    pub body: Result<Vec<u8>, HttpError>,
}

impl Answer {
    /// The body as it may be shown to people: its beginning, in one line.
    pub fn text(&self) -> String {
        match &self.body {
            Ok(body) => one_line(body),
            Err(error) => error.to_string(),
        }
    }
}

/// `Retry-After`, in either of its forms.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = httpdate::parse_http_date(text).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_read_in_seconds_and_as_a_date() {
        let read = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            retry_after(&headers, SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770))
        };
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
        assert_eq!(retry_after(&HeaderMap::new(), SystemTime::UNIX_EPOCH), None);
    }
}
