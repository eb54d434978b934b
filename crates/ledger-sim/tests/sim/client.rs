//! A plain TCP client, so that no HTTP library hides what the ledger sends.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

/// Longer than any response takes, even under load.
pub const READ_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status_line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path)
    }

    pub fn post(path: impl Into<String>) -> Self {
        Self::new("POST", path)
    }

    pub fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout: READ_TIMEOUT,
        }
    }

    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub fn send(&self, address: SocketAddr) -> io::Result<Response> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(self.timeout))?;
        stream.write_all(&self.bytes(address))?;
        read_response(&mut BufReader::new(stream))
    }

    fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.path).into_bytes();
        let length = self.body.len().to_string();
        let own = [
            ("host".to_owned(), address.to_string().into_bytes()),
            ("content-length".to_owned(), length.into_bytes()),
        ];
        for (name, value) in own.iter().chain(&self.headers) {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

impl Response {
    pub fn status(&self) -> u16 {
        self.status_line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

fn read_response(stream: &mut impl BufRead) -> io::Result<Response> {
    let status_line = read_line(stream)?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(stream)?;
        match line.split_once(": ") {
            Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
            None => break,
        }
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.expect("every response has a content length").1.parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Response { status_line, headers, body })
}

fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    match stream.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end().to_owned()),
    }
}

/// Waits until the condition holds.
pub fn eventually(condition: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + READ_TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "timed out: {condition}");
        thread::sleep(Duration::from_millis(1));
    }
}
