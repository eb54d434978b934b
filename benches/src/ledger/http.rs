//! The HTTP/1.1 that the server and the benchmark's clients use.

use std::str;

/// A request in the buffer of its connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) is_post: bool,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) body: &'a [u8],
    /// The key of a request that opens a websocket.
    pub(super) websocket_key: Option<&'a str>,
    /// The length of the request in the buffer.
    pub(super) length: usize,
}

impl<'a> Request<'a> {
    /// The first request in the buffer. `None` if it is not complete.
    pub(super) fn parse(buffer: &'a [u8]) -> Option<Self> {
        let head_length = find_end_of_head(buffer)?;
        let head = str::from_utf8(&buffer[..head_length]).ok()?;
        let (request_line, headers) = head.split_once("\r\n")?;
        let mut words = request_line.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (mut body_length, mut websocket_key) = (0, None);
        for (name, value) in headers.lines().filter_map(|line| line.split_once(':')) {
            if name.eq_ignore_ascii_case("content-length") {
                body_length = value.trim().parse().ok()?;
            } else if name.eq_ignore_ascii_case("sec-websocket-key") {
                websocket_key = Some(value.trim());
            }
        }
        let length = head_length + body_length;
        let body = buffer.get(head_length..length)?;
        Some(Self { is_post: method == "POST", path, query, body, websocket_key, length })
    }

    /// The value of a parameter of the query, as it was sent.
    pub(super) fn parameter(&self, name: &str) -> Option<&'a str> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(other, _)| *other == name).map(|(_, value)| value)
    }
}

fn find_end_of_head(buffer: &[u8]) -> Option<usize> {
    buffer.windows(4).position(|window| window == b"\r\n\r\n").map(|position| position + 4)
}

/// Appends a response with a JSON body.
pub(super) fn write_json(output: &mut Vec<u8>, status: &str, body: &str) {
    let length = body.len();
    output.extend_from_slice(
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )
        .as_bytes(),
    );
    output.extend_from_slice(body.as_bytes());
}

/// Appends the response that opens a websocket.
pub(super) fn write_upgrade(output: &mut Vec<u8>, accept: &str) {
    output.extend_from_slice(
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-accept: {accept}\r\n\r\n"
        )
        .as_bytes(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_parsed_when_it_is_complete() {
        let text =
            b"POST /a/b?x=1&ids=2,3 HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbodyGET /";
        for length in 0..text.len() - 5 {
            assert_eq!(Request::parse(&text[..length]), None, "{length}");
        }
        let request = Request::parse(text).unwrap();
        assert!(request.is_post);
        assert_eq!((request.path, request.parameter("ids")), ("/a/b", Some("2,3")));
        assert_eq!((request.body, request.length), (&b"body"[..], text.len() - 5));
        assert_eq!(request.websocket_key, None);
    }

    #[test]
    fn websocket_key_is_found() {
        let text = b"GET /ws HTTP/1.1\r\nSec-WebSocket-Key: abc=\r\n\r\n";
        assert_eq!(Request::parse(text).unwrap().websocket_key, Some("abc="));
    }
}
