use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// Longer than anything takes, and shorter than the patience of whoever runs the tests.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection on which every byte can be said.
pub struct Client(BufReader<TcpStream>);

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    /// Says this; that the other side has hung up shows when it is read from.
    pub fn say(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.try_say(bytes);
    }

    /// Says this, if the other side listens to the end.
    pub fn try_say(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.get_mut().write_all(bytes.as_ref())
    }

    /// Whether there is something to be heard already.
    pub fn hears_something(&mut self) -> bool {
        let stream = self.0.get_ref();
        stream.set_nonblocking(true).unwrap();
        let heard = stream.peek(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        heard.is_ok()
    }

    pub fn hear(&mut self) -> Answer {
        self.try_hear().expect("an answer")
    }

    /// The next answer; `None` when the other side hangs up instead.
    pub fn try_hear(&mut self) -> Option<Answer> {
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if status != 100 {
            answer.body.resize(answer.header("content-length")?.parse().unwrap(), 0);
            self.0.read_exact(&mut answer.body).ok()?;
        }
        Some(answer)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) => {
                assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "nothing is heard");
                None
            }
        }
    }

    /// Whether the other side has hung up, or does so soon.
    pub fn is_hung_up(&mut self) -> bool {
        self.try_hear().is_none()
    }

    pub fn hang_up(self) {
        let _ = self.0.get_ref().shutdown(Shutdown::Both);
    }

    pub fn ask(&mut self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Answer {
        self.say(request(method, path, headers, body));
        self.hear()
    }
}

pub fn request(method: &str, path: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nhost: grid.test\r\ncontent-length: {length}\r\n");
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The HTTP status and the code of an error that has all its parts.
    pub fn error(&self) -> (u16, u64) {
        let json = self.json();
        let error = &json["error"];
        assert!(!error["title"].as_str().unwrap().is_empty(), "{json}");
        assert!(!error["message"].as_str().unwrap().is_empty(), "{json}");
        let pause = matches!(self.status, 429 | 503).then_some("1");
        assert_eq!(self.header("retry-after"), pause);
        (self.status, error["code"].as_u64().unwrap())
    }

    pub fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }

    pub fn link(&self) -> String {
        assert_eq!(self.status, 202, "{}", String::from_utf8_lossy(&self.body));
        self.json()["link"].as_str().unwrap().to_owned()
    }

    /// The statuses, in the order of the answer.
    pub fn statuses(&self) -> Vec<String> {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        let data = self.json()["data"].as_array().unwrap().clone();
        data.iter().map(|batch| batch["status"].as_str().unwrap().to_owned()).collect()
    }
}
