use bytes::Bytes;
use grid_batch_core::Timestamp;
use hyper::{HeaderMap, Method, http::request::Parts};

/// A request that was read completely.
#[derive(Debug)]
pub(crate) struct SimRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    /// The length of the encoded path and query in bytes.
    pub(crate) target_length: usize,
    pub(crate) headers: HeaderMap,
    pub(crate) body: RequestBody,
    pub(crate) received_at: Timestamp,
}

#[derive(Debug)]
pub(crate) enum RequestBody {
    Complete(Bytes),
    /// The body exceeds the limit of the ledger.
    TooLong {
        /// The number of bytes read when the limit was exceeded.
        read: usize,
    },
}

impl SimRequest {
    pub(crate) fn new(parts: Parts, body: RequestBody, received_at: Timestamp) -> Self {
        let target = parts.uri.path_and_query();
        Self {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            target_length: target.map_or(0, |target| target.as_str().len()),
            headers: parts.headers,
            body,
            received_at,
        }
    }

    /// The value of a header, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.trim_start_matches('/').split('/').collect()
    }
}

/// The decoded query of a URL.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    fn parse(text: &str) -> Self {
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (percent_decode(name), percent_decode(value))
        };
        Self(text.split('&').filter(|part| !part.is_empty()).map(pair).collect())
    }

    /// The first value of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn percent_decode(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (*first, after) {
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                decoded.extend(hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low));
                rest = after;
            }
            (b'+', _) => decoded.push(b' '),
            (byte, _) => decoded.push(byte),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_decoded() {
        let query = Query::parse("id=a%2Cb&wait=5&flag&x=%zz+1");
        assert_eq!(query.get("id"), Some("a,b"));
        assert_eq!(query.get("wait"), Some("5"));
        assert_eq!(query.get("flag"), Some(""));
        assert_eq!(query.get("x"), Some("%zz 1"));
        assert_eq!(query.get("y"), None);
    }
}
