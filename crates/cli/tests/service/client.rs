use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub text: String,
}

/// One request on a connection of its own.
pub fn ask(address: SocketAddr, request: &[u8]) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // Who is refused early may not have listened to the end.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if answer.is_empty() => return Err(error),
        _ => {}
    }
    let text = String::from_utf8_lossy(&answer);
    let (head, text) = text.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(Answer { status: status.ok_or(io::ErrorKind::InvalidData)?, text: text.to_owned() })
}

pub fn request(method: &str, path: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: grid.test\r\nconnection: close\r\n\
         content-length: {length}\r\n"
    );
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}
