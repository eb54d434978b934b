use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::HttpError;

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
    /// So much of a body is shown to people.
    const SHOWN: usize = 500;

    /// The body as it may be shown to people: its beginning, in one line.
    pub fn text(&self) -> String {
        let body = match &self.body {
            Ok(body) => body,
            Err(error) => return error.to_string(),
        };
        let beginning = &body[..body.len().min(4 * Self::SHOWN)];
        let text = String::from_utf8_lossy(beginning);
        let words: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|w| !w.is_empty())
            .collect();
        let line = words.join(" ");
        match line.char_indices().nth(Self::SHOWN) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
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

    fn answer(body: impl Into<Vec<u8>>) -> Answer {
        Answer { status: 500, retry_after: None, body: Ok(body.into()) }
    }

    #[test]
    fn a_body_is_shown_in_one_line_and_not_whole() {
        assert_eq!(answer("{\n  \"a\":\t1\u{7}}\n").text(), "{ \"a\": 1 }");
        assert_eq!(answer(vec![0xff; 3]).text(), "\u{fffd}\u{fffd}\u{fffd}");
        let long = answer("é".repeat(10_000)).text();
        assert_eq!(long.chars().count(), Answer::SHOWN + 1);
        assert_eq!(answer("").text(), "");
    }

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
