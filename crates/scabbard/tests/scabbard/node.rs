//! A node that reacts to each request as a test defines it.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
};

#[derive(Debug, Clone)]
pub struct Request {
    pub head: String,
    pub body: Vec<u8>,
}

impl Request {
    /// The method and the target.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap().trim_end_matches(" HTTP/1.1")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// The reaction of a node to a request.
pub enum Reaction {
    /// Sends these bytes and keeps the connection.
    Respond(Vec<u8>),
    /// Sends these bytes and closes the connection.
    RespondAndClose(Vec<u8>),
    /// Sends these bytes when the test releases them.
    RespondWhen(Vec<u8>, Arc<Notify>),
    /// Never responds.
    Stall,
}

pub struct Node {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Node {
    pub async fn start(react: impl Fn(&Request) -> Reaction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, react) = (Arc::clone(&requests), Arc::new(react));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, react) = (Arc::clone(&log), Arc::clone(&react));
                tokio::spawn(async move { serve(stream, &log, &*react).await });
            }
        });
        Self { url, requests }
    }

    /// A node that always sends these bytes.
    pub async fn responding(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |_| Reaction::Respond(bytes.clone())).await
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Request>>,
    react: &(dyn Fn(&Request) -> Reaction + Send + Sync),
) -> io::Result<()> {
    loop {
        let request = read(&mut stream).await?;
        log.lock().unwrap().push(request.clone());
        match react(&request) {
            Reaction::Respond(bytes) => stream.write_all(&bytes).await?,
            Reaction::RespondAndClose(bytes) => return stream.write_all(&bytes).await,
            Reaction::RespondWhen(bytes, released) => {
                released.notified().await;
                stream.write_all(&bytes).await?;
            }
            Reaction::Stall => std::future::pending().await,
        }
    }
}

async fn read(stream: &mut TcpStream) -> io::Result<Request> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(bytes).unwrap();
    let mut request = Request { head, body: Vec::new() };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    request.body.resize(length, 0);
    stream.read_exact(&mut request.body).await?;
    Ok(request)
}

/// A response with this status and this body.
pub fn response(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Reason\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}
