//! A minimal HTTP client: each request has its own connection.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A response without its headers.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// Sends a request and reads the response.
pub fn send(address: SocketAddr, request: &[u8]) -> io::Result<Response> {
    send_with_timeout(address, request, DEFAULT_TIMEOUT)
}

/// Sends a request and reads the response; connecting, each write and each read may take this long.
pub fn send_with_timeout(
    address: SocketAddr,
    request: &[u8],
    timeout: Duration,
) -> io::Result<Response> {
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    // A server that refuses a request early may close the connection before it has read all of it.
    let _ = stream.write_all(request);
    let mut received = Vec::new();
    match stream.read_to_end(&mut received) {
        Err(error) if received.is_empty() => return Err(error),
        _ => {}
    }
    parse_response(&received)
}

fn parse_response(bytes: &[u8]) -> io::Result<Response> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(Response { status: status.ok_or(io::ErrorKind::InvalidData)?, body: body.to_owned() })
}

/// The bytes of a request that closes its connection. Each header is a line such as
/// `content-type: application/json`.
pub fn request(method: &str, path: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-length: {length}\r\n"
    );
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

impl Response {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    #[test]
    fn request_is_sent_and_response_is_parsed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let expected = request("POST", "/path", &["content-type: text/plain"], b"body");
        let length = expected.len();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = vec![0; length];
            stream.read_exact(&mut received).unwrap();
            stream.write_all(b"HTTP/1.1 202 Accepted\r\nx: y\r\n\r\n{\"a\": 1}").unwrap();
            received
        });
        let response = send(address, &expected).unwrap();
        assert_eq!(server.join().unwrap(), expected);
        assert_eq!((response.status, &response.json()["a"]), (202, &1.into()));
    }

    #[test]
    fn incomplete_response_head_is_an_error() {
        assert!(parse_response(b"HTTP/1.1 202 Accepted\r\n").is_err());
        assert!(parse_response(b"not HTTP\r\n\r\n").is_err());
    }
}
