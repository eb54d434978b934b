//! A REST API that sends prepared responses.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Sends the next prepared response for each request, and repeats the last one. It runs until it is
/// dropped.
pub struct RestApi {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone)]
pub struct Request {
    /// The method and the target.
    pub line: String,
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl RestApi {
    pub async fn new(responses: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        let responses: Vec<Vec<u8>> = responses.into_iter().map(Into::into).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let log = requests.clone();
        let task = tokio::spawn(async move {
            for number in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read(&mut stream).await;
                log.lock().unwrap().push(request);
                // The client may have disconnected.
                let _ = stream.write_all(&responses[number.min(responses.len() - 1)]).await;
            }
        });
        Self { address, requests, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for RestApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read(stream: &mut TcpStream) -> Request {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let line = lines.next().unwrap().strip_suffix(" HTTP/1.1").unwrap().to_owned();
    let headers: Vec<String> = lines.map(str::to_owned).collect();
    let length = headers.iter().find_map(|header| header.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    Request { line, headers, body }
}

/// The response in a file of `tests/fixtures`, with these values for its placeholders.
pub fn recorded(name: &str, values: &[(&str, &str)]) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}.http", env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(path).unwrap();
    for (key, value) in values {
        text = text.replace(&format!("{{{key}}}"), value);
    }
    let (head, body) = text.split_once("\n\n").unwrap();
    let body = body.strip_suffix('\n').unwrap();
    complete(&head.replace('\n', "\r\n"), body)
}

/// A response with this status and this body.
pub fn answer(status: u16, body: &str) -> Vec<u8> {
    complete(&format!("HTTP/1.1 {status} Reason"), body)
}

fn complete(head: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").into_bytes()
}

/// A URL at which no server listens.
pub async fn unused_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
