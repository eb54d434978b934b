//! A receiver of webhooks.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener},
    sync::mpsc,
    thread,
    time::Duration,
};

/// A request that the receiver got.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceivedMessage {
    /// The path of the URL.
    pub path: String,
    /// The header `webhook-id`.
    pub id: String,
    /// The header `webhook-timestamp`.
    pub timestamp: String,
    /// The header `webhook-signature`.
    pub signature: String,
    /// The header `traceparent`, if there is one.
    pub traceparent: Option<String>,
    /// The body.
    pub body: String,
}

/// A receiver that answers with these statuses, one after the other, and then with 204. For the status "close" it
/// closes the connection instead, and for "hang" it does not answer.
pub struct WebhookReceiver {
    /// Where it listens.
    pub address: SocketAddr,
    requests: mpsc::Receiver<ReceivedMessage>,
}

impl WebhookReceiver {
    /// Starts it, for as long as the test runs.
    pub fn start(statuses: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel();
        let mut statuses = VecDeque::from(statuses.to_vec());
        thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(received) = read_request(&mut BufReader::new(&stream)) else { continue };
                let status = statuses.pop_front().unwrap_or("204 No Content");
                // The test gets the request before its sender gets the answer, so requests arrive in order.
                if sender.send(received).is_err() {
                    return;
                }
                match status {
                    "close" => {}
                    "hang" => open.push(stream),
                    status => {
                        let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n");
                        let _ = write!(stream, "{head}connection: close\r\n\r\n");
                    }
                }
            }
        });
        Self { address, requests }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/events", self.address)
    }

    /// The next request.
    pub fn next(&self) -> ReceivedMessage {
        self.requests.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    /// Whether there is no further request.
    pub fn is_unused(&self) -> bool {
        self.requests.try_recv().is_err()
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<ReceivedMessage> {
    let mut received = ReceivedMessage::default();
    let mut length = 0;
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    received.path = first.split(' ').nth(1)?.to_owned();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        let Some((name, value)) = line.split_once(": ") else { break };
        let value = value.to_owned();
        match name.to_ascii_lowercase().as_str() {
            "webhook-id" => received.id = value,
            "webhook-timestamp" => received.timestamp = value,
            "webhook-signature" => received.signature = value,
            "traceparent" => received.traceparent = Some(value),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    received.body = String::from_utf8(body).ok()?;
    Some(received)
}
