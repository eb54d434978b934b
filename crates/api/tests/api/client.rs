use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// Longer than any answer takes, and shorter than the time limit of a test.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// An HTTP client that controls each byte it sends.
pub struct Client(BufReader<TcpStream>);

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    /// Sends a request and receives the response.
    pub fn request(&mut self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Response {
        self.send(encode_request(method, path, headers, body));
        self.receive()
    }

    /// Sends bytes. If the server has closed the connection, the next read shows it.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.try_send(bytes);
    }

    /// Sends bytes, if the server reads all of them.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.get_mut().write_all(bytes.as_ref())
    }

    pub fn receive(&mut self) -> Response {
        self.try_receive().expect("a response")
    }

    /// The next response; `None` if the server closes the connection instead.
    pub fn try_receive(&mut self) -> Option<Response> {
        let status_line = self.read_line()?;
        let status = status_line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.read_line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut response = Response { status, headers, body: Vec::new() };
        if ![100, 204].contains(&status) {
            response.body.resize(response.header("content-length")?.parse().unwrap(), 0);
            self.0.read_exact(&mut response.body).ok()?;
        }
        Some(response)
    }

    /// The next message of a stream of server-sent events: its id and data, or the id alone.
    pub fn next_message(&mut self) -> Option<(String, Option<Value>)> {
        let mut id = None;
        let mut data = None;
        loop {
            let line = self.read_line()?;
            if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.to_owned());
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(text).unwrap());
            } else if line.is_empty()
                && let Some(id) = id.take()
            {
                return Some((id, data));
            }
        }
    }

    fn read_line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) => {
                assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "no response in time");
                None
            }
        }
    }

    /// Whether the server closes the connection without a response.
    pub fn is_closed(&mut self) -> bool {
        self.try_receive().is_none()
    }

    pub fn close(self) {
        let _ = self.0.get_ref().shutdown(Shutdown::Both);
    }
}

/// A request for this server, as all clients of this module send them.
pub fn encode_request(method: &str, path: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nhost: grid.test\r\ncontent-length: {length}\r\n");
    for header in headers.iter().copied().chain(default_content_type(path, headers, body)) {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

/// The right type, unless the headers have one, or there is nothing to have a type.
fn default_content_type(path: &str, headers: &[&str], body: &[u8]) -> Option<&'static str> {
    let is_given = headers.iter().any(|header| header.starts_with("content-type:"));
    match path {
        _ if is_given || path.starts_with("/scabbard/") => None,
        path if path.starts_with("/batches") => Some("content-type: application/octet-stream"),
        _ if body.is_empty() => None,
        _ => Some("content-type: application/json"),
    }
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The HTTP status and the error code, if the error is complete.
    pub fn error(&self) -> (u16, u64) {
        let json = self.json();
        let (error, message) = match json.get("error") {
            Some(error) => (error, &error["message"]),
            None => (&json, &json["detail"]),
        };
        assert!(!error["title"].as_str().unwrap().is_empty(), "{json}");
        assert!(!message.as_str().unwrap().is_empty(), "{json}");
        let code = error["code"].as_u64().unwrap();
        let seconds = match code {
            1018 | 1019 => "10",
            1042 => "600",
            _ => "1",
        };
        let retry_after = matches!(self.status, 429 | 503).then_some(seconds);
        assert_eq!(self.header("retry-after"), retry_after);
        (self.status, code)
    }

    /// The message of an error.
    pub fn message(&self) -> String {
        let json = self.json();
        json.pointer("/error/message").or(json.get("detail")).unwrap().as_str().unwrap().to_owned()
    }

    /// The link to the statuses of accepted batches.
    pub fn link(&self) -> String {
        assert_eq!(self.status, 202, "{}", String::from_utf8_lossy(&self.body));
        self.json()["link"].as_str().unwrap().to_owned()
    }

    /// The statuses of batches, in the order of the response.
    pub fn statuses(&self) -> Vec<String> {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        let data = self.json()["data"].as_array().unwrap().clone();
        data.iter().map(|batch| batch["status"].as_str().unwrap().to_owned()).collect()
    }
}
